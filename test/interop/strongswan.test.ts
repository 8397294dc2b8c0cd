/** strongSwan's `pki`, against the quickstart's configuration. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../support/command.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { requires } from '../support/requires.ts';

const KEYS = {
  ECDSA: ['--type', 'ecdsa', '--size', '256'],
  RSA: ['--type', 'rsa', '--size', '2048'],
} as const;

describe.skipIf(!requires('pki', 'curl', 'openssl'))('strongSwan pki', () => {
  let server: Quickstart;

  beforeAll(async () => {
    server = await startQuickstart();
  });
  afterAll(() => server.stop());

  const file = (name: string): string => server.file(`client/${name}`);

  async function request(name: string, kind: keyof typeof KEYS): Promise<{ key: string; csr: string }> {
    const [key, csr] = [file(`${name}.key`), file(`${name}.der`)];
    writeFileSync(key, await run('pki', ['--gen', ...KEYS[kind], '--outform', 'pem']), { mode: 0o600 });
    const names = ['--dn', `CN=${name.replace(/-again$/, '')}`, '--san', 'device.example.com'];
    writeFileSync(csr, await run('pki', ['--req', '--in', key, '--type', 'priv', ...names, '--outform', 'der']));
    return { key, csr };
  }

  async function est(csr: string, out: string, ...more: readonly string[]): Promise<string> {
    const trust = ['--cacert', server.file('ca/root.pem'), '--cacert', server.file('ca/issuing.pem')];
    const polling = ['--interval', '1', '--maxpolltime', '6'];
    const base = ['--est', '--url', `https://${server.host}`, '--in', csr, ...trust, ...polling, '--outform', 'pem'];
    writeFileSync(file(out), await run('pki', [...base, ...more]));
    return file(out);
  }

  /** The operation that issued each certificate, from the audit log. */
  async function operations(...serials: readonly string[]): Promise<unknown[]> {
    const answer = await server.admin('/admin/audit?type=certificate.issued&limit=100');
    const text = JSON.stringify(answer);
    return serials.map((serial) => new RegExp(`"serial":"${serial}"[^}]*"detail":"([a-z]+)"`).exec(text)?.[1]);
  }

  test('gets the CA certificates', async () => {
    const out = file('strongswan-ca.pem');
    const trust = ['--cacert', server.file('ca/root.pem'), '--caout', out];
    await run('pki', ['--estca', '--url', `https://${server.host}`, ...trust, '--outform', 'pem', '--force']);
    const root = readFileSync(server.file('ca/root.pem'), 'utf8').replace(/\s/g, '');
    expect(readFileSync(out, 'utf8').replace(/\s/g, '')).toContain(root);
    // The intermediate gets a number behind the name.
    expect(existsSync(file('strongswan-ca-1.pem'))).toBe(true);
  });

  test.each(['ECDSA', 'RSA'] as const)('enrolls with an OTP and renews over mTLS: %s', async (kind) => {
    const name = `strongswan-${kind.toLowerCase()}`;
    const first = await request(name, kind);
    const otp = await server.createOtp(name);
    const firstPem = await est(first.csr, `${name}.pem`, '--userpass', `${name}:${otp}`);
    const issued = await server.check(firstPem, { subject: `CN=${name}`, key: first.key });
    expect(issued.record['method']).toBe('otp');

    const second = await request(`${name}-again`, kind);
    const secondPem = await est(second.csr, `${name}-again.pem`, '--cert', firstPem, '--key', first.key);
    const renewed = await server.check(secondPem, { subject: `CN=${name}`, key: second.key });
    expect(renewed.record['method']).toBe('mtls');
    expect(renewed.serial).not.toBe(issued.serial);
    // A certificate always means renewal to pki: it has no way to use one for simpleenroll.
    expect(await operations(issued.serial, renewed.serial)).toEqual(['simpleenroll', 'simplereenroll']);
  });
});
