import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Kdc, REALM } from '../support/kdc.ts';
import { initialToken } from '../support/negotiate.ts';
import { NegotiateServer } from '../support/negotiate-server.ts';
import { requires } from '../support/requires.ts';

describe.skipIf(!requires('openssl', 'kdc'))('[gssapi] at start-up of the built server', () => {
  let kdc: Kdc;
  beforeAll(async () => {
    kdc = await Kdc.start();
    await kdc.addUser('alice');
    await kdc.addService('host/localhost');
    await kdc.exportKeys('host/localhost', join(kdc.dir, 'other.keytab'));
  });
  afterAll(async () => await kdc.stop());

  it.each([
    [
      'a keytab without a key of the service',
      (dir: string) => `keytab = "${dir}/other.keytab"\ndefault_template = "CN={principal}"`,
      /gssapi\.keytab: provides no credentials/,
    ],
    [
      'a keytab that is missing',
      (dir: string) => `keytab = "${dir}/missing.keytab"\ndefault_template = "CN={principal}"`,
      /gssapi\.keytab: /,
    ],
    [
      'keytab and gssproxy',
      (dir: string) => `keytab = "${dir}/http.keytab"\ngssproxy = true\ndefault_template = "CN={principal}"`,
      /gssapi\.keytab: is given, and gssapi\.gssproxy is true/,
    ],
    [
      'a template with an unknown placeholder',
      (dir: string) => `keytab = "${dir}/http.keytab"\ndefault_template = "CN={principal},O={relam}"`,
      /gssapi\.default_template: unknown placeholder \{relam\}/,
    ],
    [
      'a mapping for something that is no principal',
      (dir: string) => `keytab = "${dir}/http.keytab"\n[gssapi.principal_mapping]\nalice = "CN=Alice"`,
      /gssapi\.principal_mapping\."alice": not a principal/,
    ],
  ])('%s stops the start: exit code 1 for a file, 2 for the configuration', async (name, lines, problem) => {
    const start = NegotiateServer.start({ kdc, gssapi: lines(kdc.dir) });
    const error: unknown = await start.then(
      async (server) => await server.stop(),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(Error);
    const code = /^a keytab (?:without|that)/.test(name) ? 1 : 2;
    expect(String(error)).toContain(`the server stopped (${code})`);
    expect(String(error)).toMatch(problem);
  });

  it('a realm in another case than that of the keytab is refused by name', async () => {
    const gssapi = `keytab = "${kdc.dir}/http.keytab"\ndefault_template = "CN={principal}"`;
    const start = NegotiateServer.start({ kdc, gssapi, service_principal: 'HTTP/localhost@example.test' });
    const error: unknown = await start.then(
      async (server) => await server.stop(),
      (reason: unknown) => reason,
    );
    expect(String(error)).toContain(
      `gssapi.service_principal: is of the realm example.test, but ${kdc.dir}/http.keytab has keys of ${REALM}`,
    );
  });

  it('without a mapping and a template: a warning at the start, and `principal not mapped`', async () => {
    const cache = await kdc.login('alice');
    for (const gssapi of [`keytab = "${kdc.dir}/http.keytab"`, 'require_crypto_verification = false']) {
      const server = await NegotiateServer.start({ kdc, gssapi });
      try {
        await expect.poll(() => server.quickstart.server.output()).toContain('gssapi.principal_mapping');
        const token = await initialToken({ env: kdc.env, cache });
        expect(await server.post({ token })).toMatchObject({ status: 401, text: 'principal not mapped' });
      } finally {
        await server.stop();
      }
    }
  });

  it('unverified tickets: refused under profile = "niap"', async () => {
    const gssapi = 'require_crypto_verification = false\ndefault_template = "CN={principal}"';
    const start = NegotiateServer.start({ kdc, gssapi, topLevel: 'profile = "niap"' });
    const error: unknown = await start.then(
      async (server) => await server.stop(),
      (reason: unknown) => reason,
    );
    expect(String(error)).toMatch(/gssapi\.require_crypto_verification: is false.* profile = "niap" refuses/);
  });

  it('unverified tickets: a loud warning at start, and each use is marked in the audit', async () => {
    const cache = await kdc.login('alice');
    const gssapi = 'require_crypto_verification = false\ndefault_template = "CN={principal}"';
    const server = await NegotiateServer.start({ kdc, gssapi });
    try {
      await expect.poll(() => server.quickstart.server.output()).toContain('NOT VERIFIED');
      const token = await initialToken({ env: kdc.env, cache });
      for (let use = 0; use < 2; use++)
        expect(await server.post({ token })).toMatchObject({ status: 200, subject: `CN=HTTP/localhost@${REALM}` });
      const records = await server.audit('auth.gssapi');
      expect(records).toHaveLength(2);
      for (const { outcome, detail } of records) {
        expect(outcome).toBe('success');
        expect(detail).toContain('NOT verified');
      }
      expect(await server.children()).toEqual([]);
    } finally {
      await server.stop();
    }
  });
});
