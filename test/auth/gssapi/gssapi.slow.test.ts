import { cp, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkGssapi, createGssapi } from '../../../src/auth/gssapi/gssapi.ts';
import type { Gssapi, GssapiOptions } from '../../../src/auth/gssapi/gssapi.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { runText } from '../../support/command.ts';
import { KeptLog } from '../../support/kept-log.ts';
import { Kdc, REALM, SERVICE } from '../../support/kdc.ts';
import { initialToken } from '../../support/negotiate.ts';
import { requires } from '../../support/requires.ts';
import { ROOT } from '../../support/root.ts';
import { presenting } from '../../support/spnego.ts';
import { removeFolder } from '../../support/folders.ts';

const BASE: GssapiOptions['config'] = {
  enabled: true,
  gssproxy: false,
  fold_case: false,
  service_principal: SERVICE,
  principal_mapping: {},
  require_crypto_verification: true,
};

const NOTHING = { mistakes: [], problems: [], warnings: [] };

function options(config: Partial<GssapiOptions['config']>, environment = {}): GssapiOptions & { log: KeptLog } {
  const mapping = config.principal_mapping === undefined ? { default_template: 'CN={principal}' } : {};
  return { config: { ...BASE, ...mapping, ...config }, environment, log: new KeptLog() };
}

async function started(gssapi: GssapiOptions): Promise<Gssapi> {
  const made = createGssapi(gssapi);
  await made.start();
  return made;
}

describe('require_crypto_verification = false', () => {
  const unverified = options({ require_crypto_verification: false, default_template: 'CN={instance},OU={primary}' });

  it('starts without any Kerberos library', async () => {
    const { stop } = await started(unverified);
    await stop();
    expect(unverified.log.lines).toEqual([]);
    expect(await checkGssapi(unverified)).toEqual(NOTHING);
  });

  it('has its mapping checked too', async () => {
    const { mistakes } = await checkGssapi(
      options({
        require_crypto_verification: false,
        default_template: '{principal}',
        principal_mapping: { x: 'CN=X' },
      }),
    );
    expect(mistakes.map(({ key }) => key)).toEqual(['gssapi.principal_mapping."x"', 'gssapi.default_template']);
  });
});

describe.skipIf(!requires('kdc'))('with a real KDC', () => {
  let kdc: Kdc;
  let cache: string;
  beforeAll(async () => {
    kdc = await Kdc.start();
    await kdc.addUser('alice');
    cache = await kdc.login('alice');
  });
  afterAll(async () => await kdc.stop());

  it("unverified, the principal is the ticket's cleartext service name, and each use says so for the audit", async () => {
    const { plugin, stop } = await started(
      options({ require_crypto_verification: false, default_template: 'CN={instance},OU={primary}' }),
    );
    const token = await initialToken({ env: kdc.env, cache });
    for (let use = 0; use < 2; use++) {
      const identity = await plugin.authenticate(presenting(`Negotiate ${token}`));
      expect(identity).toMatchObject({ principal: SERVICE, note: expect.stringContaining('NOT verified') as string });
      expect(identity === undefined ? '' : formatName(identity.subject)).toBe('CN=localhost,OU=HTTP');
    }
    await stop();
  });

  it('verified, the audit has nothing to add, and the log no warning', async () => {
    const verified = options({ keytab: kdc.keytab }, kdc.env);
    const { plugin, stop } = await started(verified);
    expect(verified.log.lines).toEqual([expect.objectContaining({ level: 'info' })]);
    const token = await initialToken({ env: kdc.env, cache });
    const identity = await plugin.authenticate(presenting(`nEGOTIATE  ${token} `));
    expect(identity).toMatchObject({
      principal: `alice@${REALM}`,
      requester: `gssapi:alice@${REALM}`,
      note: undefined,
    });
    await stop();
  });

  it('other schemes are not for this method', async () => {
    const { plugin, stop } = await started(options({ keytab: kdc.keytab }, kdc.env));
    for (const authorization of [undefined, '', 'Basic YTpi', 'Negotiated YTpi', 'NTLM TlRMTVNTUAAB'])
      expect(await plugin.authenticate(presenting(authorization))).toBeUndefined();
    for (const authorization of ['Negotiate', 'Negotiate ', 'negotiate !'])
      await expect(plugin.authenticate(presenting(authorization))).rejects.toMatchObject({
        status: 401,
        message: 'GSSAPI authentication failed',
      });
    await stop();
  });

  it('a principal with neither entry nor template is refused with `principal not mapped`', async () => {
    const { plugin, stop } = await started(
      options({ keytab: kdc.keytab, principal_mapping: { 'bob@EXAMPLE.TEST': 'CN=Bob' } }, kdc.env),
    );
    const token = await initialToken({ env: kdc.env, cache });
    await expect(plugin.authenticate(presenting(`Negotiate ${token}`))).rejects.toMatchObject({
      status: 401,
      message: 'principal not mapped',
      detail: expect.stringContaining('alice@EXAMPLE.TEST') as string,
    });
    await stop();
  });

  it.each([
    ['missing', 'missing.keytab', undefined, /not found/],
    ['no keytab at all', 'broken.keytab', 'something else', /key table format/],
    ['without a key of the service principal', 'other.keytab', undefined, /HTTP\/localhost/],
  ])('a keytab that is %s is a problem of the configuration', async (_, name, text, reason) => {
    const keytab = join(kdc.dir, name);
    if (text !== undefined) await writeFile(keytab, text);
    if (name === 'other.keytab') {
      await kdc.addService('host/localhost');
      await kdc.exportKeys('host/localhost', keytab);
    }
    const { problems, warnings } = await checkGssapi(options({ keytab }, kdc.env));
    const [problem, ...more] = problems;
    expect([more, warnings]).toEqual([[], []]);
    expect(problem?.key).toBe('gssapi.keytab');
    expect(problem?.message).toMatch(/^provides no credentials: /);
    expect(problem?.message).toMatch(reason);
  });

  it('a replay cache that cannot be written is a warning of the configuration', async () => {
    const KRB5RCACHEDIR = join(kdc.dir, 'gone');
    const { problems, warnings } = await checkGssapi(options({ keytab: kdc.keytab }, { ...kdc.env, KRB5RCACHEDIR }));
    expect(problems).toEqual([]);
    expect(warnings).toEqual([
      { key: 'gssapi.enabled', message: expect.stringContaining(`replay cache ${KRB5RCACHEDIR}/krb5_`) as string },
    ]);
  });

  it('a good keytab is no problem, nor is GSSAPI switched off', async () => {
    expect(await checkGssapi(options({ keytab: kdc.keytab }, kdc.env))).toEqual(NOTHING);
    expect(await checkGssapi(options({ enabled: false, keytab: '/nonexistent', default_template: '' }))).toEqual(
      NOTHING,
    );
  });

  it('a gssproxy that does not answer is no problem of the configuration, but is warned of', async () => {
    const proxied = options({ gssproxy: true }, { ...kdc.env, GSSPROXY_SOCKET: join(kdc.dir, 'no.sock') });
    expect(await checkGssapi(proxied)).toEqual(NOTHING);
    const { stop } = await started(proxied);
    await stop();
    expect(proxied.log.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', message: `there are no usable Kerberos credentials for ${SERVICE}` }),
    );
  });
});

describe('without the optional npm package kerberos', () => {
  let dir: string;
  beforeAll(async () => {
    // The sources in a place from which no node_modules can be seen.
    dir = await mkdtemp(join(tmpdir(), 'estuary-no-kerberos-'));
    await mkdir(join(dir, 'src'));
    for (const part of ['errors.ts', 'dependency-calls.ts', 'auth', 'process', 'pki', 'request-context.ts'])
      await cp(join(ROOT, 'src', part), join(dir, 'src', part), { recursive: true });
    await writeFile(join(dir, 'package.json'), '{"type":"module"}');
    await writeFile(
      join(dir, 'check.ts'),
      `import { checkGssapi } from './src/auth/gssapi/gssapi.ts';
const config = ${JSON.stringify({ ...BASE, keytab: '/nonexistent' })};
console.log(JSON.stringify((await checkGssapi({ config, environment: process.env })).problems));`,
    );
  });
  afterAll(() => removeFolder(dir));

  it('enabling GSSAPI is a clear problem of the configuration', async () => {
    const problems: unknown = JSON.parse(await runText(process.execPath, [join(dir, 'check.ts')]));
    expect(problems).toEqual([
      { key: 'gssapi.enabled', message: expect.stringMatching(/needs the optional npm package kerberos/) as string },
    ]);
  });
});
