import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { planReload } from '../../src/config/diff.ts';
import type { Config } from '../../src/config/schema.ts';
import { describe as describeError } from '../../src/errors.ts';
import { configFolder, PARTS, toml } from './support.ts';
import type { ConfigFolder } from './support.ts';

let folder: ConfigFolder;
let before: Config;
beforeAll(async () => {
  folder = await configFolder();
  ({ config: before } = await folder.load(toml()));
});
afterAll(() => folder.remove());

const plan = async (text: string): Promise<ReturnType<typeof planReload>> =>
  planReload(before, (await folder.load(text, { KEY: 'k'.repeat(32) })).config);

const TOKEN = `[admin.bearer_token]\nenabled = true\ntokens = [{ token_hash = "sha256:${'0'.repeat(64)}", description = "x" }]`;

describe('SIGHUP: what applies live and what needs a restart', () => {
  test('nothing changed', async () => {
    const { config, live, restart } = await plan(toml());
    expect({ live, restart }).toEqual({ live: [], restart: [] });
    expect(config).toEqual(before);
  });

  test.each([
    ['tls.certificate', toml('', { tls: PARTS.tls.replace('server.pem', 'new.pem') })],
    ['tls.private_key', toml('', { tls: PARTS.tls.replace('server.key', 'new.key') })],
    ['tls.client_auth.trust_anchors', toml('', { clientAuth: PARTS.clientAuth.replace('root', 'new') })],
    ['tls.client_auth.crl', toml('', { clientAuth: `${PARTS.clientAuth}\ncrl = "crls"` })],
    ['admin.tls.trust_anchors', toml('', { admin: PARTS.admin.replace('ca.pem', 'new.pem') })],
    ['admin.bearer_token.enabled,admin.bearer_token.tokens', toml(TOKEN)],
    ['log.level', toml('[log]\nlevel = "debug"')],
    ['ca[devices].profile.validity_days', toml('[ca.profile]\nvalidity_days = 30')],
    ['ca[devices].file.private_key', toml('', { ca: PARTS.ca.replace('issuing.key', 'new.key') })],
    ['ca', toml('', { ca: `${PARTS.ca}${PARTS.ca.replace('default = true', '').replace('devices', 'lab')}` })],
    ['label', toml('[[label]]\nname = "lab"\nca = "devices"')],
    ['serverkeygen.encryption', toml('[serverkeygen]\nencryption = "required"')],
  ])('%s applies live', async (keys, text) => {
    const { config, live, restart } = await plan(text);
    expect(live).toEqual(keys.split(','));
    expect(restart).toEqual([]);
    expect(config).toEqual((await folder.load(text)).config);
    expect(Object.isFrozen(config.tls.client_auth)).toBe(true);
  });

  test.each([
    ['est.port', toml('[est]\nport = 1')],
    ['tls.client_auth.mode', toml('', { clientAuth: `${PARTS.clientAuth}\nmode = "required"` })],
    ['otp.enabled', toml('[otp]\nenabled = true')],
    ['otp.hmac_key', toml('[otp]\nhmac_key_env = "KEY"')],
  ])('%s needs a restart and stays as it was', async (key, text) => {
    const { config, live, restart } = await plan(text);
    expect(restart).toEqual([key]);
    expect(live).toEqual([]);
    expect(config).toEqual(before);
  });

  test('live changes apply although others need a restart', async () => {
    const { config, live, restart } = await plan(toml('[log]\nlevel = "warn"\n[est]\nport = 1'));
    expect(live).toEqual(['log.level']);
    expect(restart).toEqual(['est.port']);
    expect(config.log.level).toBe('warn');
    expect(config.est.port).toBe(9443);
  });

  test('a live change that makes no sense without a restart is refused whole', async () => {
    const changed = plan(toml('', { clientAuth: '[tls.client_auth]\nmode = "none"' }));
    await expect(changed).rejects.toMatchObject({ code: 'CONFIG_RELOAD', status: 500 });
    await expect(changed.catch(describeError)).resolves.toContain('tls.client_auth.trust_anchors: is missing');
  });
});
