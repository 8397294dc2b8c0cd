import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HIDDEN, shownConfig } from '../../../src/config/shown.ts';
import { configFolder, toml, type ConfigFolder } from '../../config/support.ts';
import { adminFixture, NOW } from './support.ts';
import { ask } from './typed.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const SECRET = 'not-to-be-shown-anywhere';

describe('GET /admin/configuration', () => {
  test('every key that has a value, with its default, whether a reload applies it, and no secret', async () => {
    const token_hash = `sha256:${'5'.repeat(64)}`;
    const { config } = await folder.load(
      toml(`
[admin.bearer_token]
enabled = true
tokens = [{ token_hash = "${token_hash}", description = "ada", roles = ["ra"] }]
[otp]
hash_algorithm = "sha256-hmac"
hmac_key_env = "KEY"
`),
      { KEY: SECRET.repeat(2) },
    );
    const configuration = shownConfig(config);
    const condition = { reloadFailed: false, lastReload: { at: NOW, ok: true } };
    const shown = await ask(await adminFixture({ configuration, condition }), 'get', '/admin/configuration', 200);
    expect(shown.reload).toEqual({ at: '2026-11-21T12:00:00.000Z', ok: true });
    expect(shown.keys).toEqual(
      expect.arrayContaining([
        { key: 'admin.port', value: 9444, live: false },
        { key: 'ca[devices].label', value: 'devices', live: true },
        { key: 'admin.bearer_token.tokens[0].token_hash', value: HIDDEN, live: true },
        { key: 'admin.bearer_token.tokens[0].description', value: 'ada', live: true },
        { key: 'admin.bearer_token.tokens[0].roles', value: ['ra'], live: true },
        { key: 'otp.hmac_key', value: HIDDEN, live: false },
        { key: 'log.level', value: 'info', live: true },
      ]),
    );
    const text = JSON.stringify(shown);
    for (const secret of [SECRET, Buffer.from(SECRET).toString('base64').slice(0, 20), '5'.repeat(64)])
      expect(text).not.toContain(secret);
  });
});
