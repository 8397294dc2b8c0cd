/** curl and openssl as an EST client, against the quickstart's configuration. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run, runAny, runText } from '../support/command.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { requires } from '../support/requires.ts';

const KEYS = {
  'P-256': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'P-384': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'],
  'RSA 2048': ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  Ed25519: ['-algorithm', 'ED25519'],
} as const;

describe.skipIf(!requires('curl', 'openssl'))('curl and openssl', () => {
  let server: Quickstart;
  let made = 0;

  beforeAll(async () => {
    server = await startQuickstart();
  });
  afterAll(() => server.stop());

  const curl = (...args: readonly string[]): Promise<Buffer> =>
    run('curl', ['-sS', '--fail-with-body', '--noproxy', '*', '--cacert', server.file('ca/root.pem'), ...args]);

  /** base64 of certs-only → PEM file, by openssl. */
  async function toPem(body: Buffer, name: string): Promise<string> {
    const der = Buffer.from(body.toString('latin1'), 'base64');
    const path = server.file(`${name}.pem`);
    writeFileSync(path, await run('openssl', ['pkcs7', '-inform', 'DER', '-print_certs'], { input: der }));
    return path;
  }

  /** A new key and a request for `CN=name`: paths of the key and of the base64 DER. */
  async function request(name: string, kind: keyof typeof KEYS = 'P-256'): Promise<{ key: string; csr: string }> {
    const base = server.file(`${name}-${++made}`);
    const [key, csr] = [`${base}.key`, `${base}.b64`];
    await run('openssl', ['genpkey', ...KEYS[kind], '-out', key]);
    const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}.example.com`];
    const der = await run('openssl', ['req', '-new', '-key', key, ...names, '-outform', 'DER']);
    writeFileSync(csr, der.toString('base64'));
    return { key, csr };
  }

  const post = (operation: string, csr: string, ...more: readonly string[]): Promise<Buffer> =>
    curl('-H', 'Content-Type: application/pkcs10', '--data-binary', `@${csr}`, ...more, `${server.est}/${operation}`);

  test('gets the CA certificates, from the issuing CA to the root', async () => {
    const pem = readFileSync(await toPem(await curl(`${server.est}/cacerts`), 'cacerts'), 'utf8');
    const bare = (path: string): string => readFileSync(server.file(path), 'utf8').replace(/\s/g, '');
    const found = [...pem.matchAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)];
    expect(found.map((match) => match[0].replace(/\s/g, ''))).toEqual([bare('ca/issuing.pem'), bare('ca/root.pem')]);
  });

  test.each(Object.keys(KEYS).filter((kind): kind is keyof typeof KEYS => kind in KEYS))(
    'enrolls with an OTP, enrolls again over mTLS and re-enrolls: %s',
    async (kind) => {
      const name = `curl-${kind.toLowerCase().replace(' ', '-')}`;
      const otp = await server.createOtp(name);
      const first = await request(name, kind);
      const firstPem = await toPem(await post('simpleenroll', first.csr, '-u', `${name}:${otp}`), `${name}-1`);
      const issued = await server.check(firstPem, { subject: `CN=${name}`, key: first.key });
      expect(issued.record['method']).toBe('otp');

      const presented = ['--cert', firstPem, '--key', first.key];
      const second = await request(name, kind);
      const secondPem = await toPem(await post('simpleenroll', second.csr, ...presented), `${name}-2`);
      const again = await server.check(secondPem, { subject: `CN=${name}`, key: second.key });
      expect(again.record['method']).toBe('mtls');

      const rekeyed = await request(name, kind);
      const thirdPem = await toPem(await post('simplereenroll', rekeyed.csr, ...presented), `${name}-3`);
      const renewed = await server.check(thirdPem, { subject: `CN=${name}`, key: rekeyed.key });
      expect(new Set([issued.serial, again.serial, renewed.serial]).size).toBe(3);
    },
  );

  test.each(['--tlsv1.2', '--tlsv1.3'])('re-enrolls with the same key over %s alone', async (version) => {
    const versions = [version, '--tls-max', version.replace('--tlsv', '')];
    const name = `curl${version.replace('--tlsv', '-').replace('.', '')}`;
    const { key, csr } = await request(name);
    const otp = await server.createOtp(name);
    const pem = await toPem(await post('simpleenroll', csr, '-u', `${name}:${otp}`, ...versions), name);
    const answer = await post('simplereenroll', csr, '--cert', pem, '--key', key, ...versions);
    await server.check(await toPem(answer, `${name}-renewed`), { subject: `CN=${name}`, key });
  });

  test('posts PEM, and enrolls with another CA by its label', async () => {
    const { key } = await request('curl-lab');
    const csr = server.file('curl-lab.csr');
    await run('openssl', ['req', '-new', '-key', key, '-subj', '/CN=curl-lab', '-out', csr]);
    const answer = await post('lab/simpleenroll', csr, '-u', `x:${await server.createOtp('curl-lab')}`);
    const pem = await toPem(answer, 'curl-lab');
    await server.check(pem, { subject: 'CN=curl-lab', key, issuer: server.file('ca/lab.pem') });
  });

  test('a wrong password is told so, and gets nothing', async () => {
    const { csr } = await request('curl-wrong');
    const type = ['-H', 'Content-Type: application/pkcs10', '--data-binary', `@${csr}`];
    const args = ['-sS', '-i', '--noproxy', '*', '--cacert', server.file('ca/root.pem'), ...type];
    const { output } = await runAny('curl', [
      ...args,
      '-u',
      'curl-wrong:not-the-password',
      `${server.est}/simpleenroll`,
    ]);
    expect(output).toContain(' 401 ');
    expect(output).toMatch(/^WWW-Authenticate: Basic realm="est"\r$/m);
    expect(output).toMatch(/\r\n\r\ninvalid OTP token/);
  });

  test('a request above 1024 bytes needs no answer to Expect: 100-continue by hand', async () => {
    const { key } = await request('curl-large');
    const names = Array.from({ length: 30 }, (_, i) => `DNS:host-${i}.of-the-large-fleet.example.com`).join(',');
    const csr = server.file('curl-large.csr');
    await run('openssl', [
      'req',
      '-new',
      '-key',
      key,
      '-subj',
      '/CN=curl-large',
      '-addext',
      `subjectAltName=${names}`,
      '-out',
      csr,
    ]);
    const otp = await server.createOtp('curl-large');
    const answer = await post('simpleenroll', csr, '-u', `x:${otp}`, '-H', 'Expect: 100-continue');
    const pem = await toPem(answer, 'curl-large');
    await server.check(pem, { subject: 'CN=curl-large', key });
    const text = await runText('openssl', ['x509', '-in', pem, '-noout', '-ext', 'subjectAltName']);
    expect(text).toContain('DNS:host-29.of-the-large-fleet.example.com');
  });
});
