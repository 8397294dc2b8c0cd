/** libest's `estclient`, against the quickstart's configuration. It exits 0 on many failures: its files count. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run, runAny } from '../support/command.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { ESTCLIENT, requires } from '../support/requires.ts';
import { encodePem } from '../../src/pki/der/pem.ts';

describe.skipIf(!requires('estclient', 'curl', 'openssl'))('libest estclient', () => {
  let server: Quickstart;

  beforeAll(async () => {
    // It cannot open an encrypted PKCS #8.
    server = await startQuickstart({ sections: '[serverkeygen]\nencryption = "optional"' });
  });
  afterAll(() => server.stop());

  /** Runs the client with a separate output folder and returns the expected file. */
  async function estclient(folder: string, expected: string, ...args: readonly string[]): Promise<string> {
    const out = server.file(`client/${folder}`);
    mkdirSync(out, { recursive: true });
    const [host = '', port = ''] = server.host.split(':');
    const env = { EST_OPENSSL_CACERT: server.file('ca/root.pem') };
    const { output } = await runAny(ESTCLIENT, ['-s', host, '-p', port, '-o', out, '-v', '-w', '60', ...args], { env });
    const file = join(out, expected);
    if (!existsSync(file)) throw new Error(`estclient wrote no ${expected}:\n${output}`);
    return file;
  }

  /** The files are base64 PKCS#7: openssl makes PEM of them. */
  async function toPem(pkcs7: string): Promise<string> {
    const der = await run('openssl', ['base64', '-d', '-in', pkcs7]);
    const pem = `${pkcs7}.pem`;
    writeFileSync(pem, await run('openssl', ['pkcs7', '-inform', 'DER', '-print_certs'], { input: der }));
    return pem;
  }

  async function newKey(name: string): Promise<string> {
    const key = server.file(`client/${name}.key`);
    await run('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key]);
    return key;
  }

  test('gets the CA certificates', async () => {
    const pem = await toPem(await estclient('cacerts', 'cacert-0-0.pkcs7', '-g'));
    await run('openssl', ['verify', '-CAfile', server.file('ca/root.pem'), pem]);
  });

  test('enrolls with an OTP, enrolls again over mTLS and re-enrolls', async () => {
    const otp = await server.createOtp('libest');
    const key = await newKey('libest');
    const subject = ['--common-name', 'libest-device'];
    const password = ['-u', 'libest', '-h', otp];
    const first = await toPem(await estclient('first', 'cert-0-0.pkcs7', '-e', '-x', key, ...password, ...subject));
    const issued = await server.check(first, { subject: 'CN=libest-device', key });
    expect(issued.record['method']).toBe('otp');

    const presented = ['-c', first, '-k', key];
    const second = await toPem(await estclient('second', 'cert-0-0.pkcs7', '-e', '-x', key, ...presented, ...subject));
    const again = await server.check(second, { subject: 'CN=libest-device', key });
    expect(again.record['method']).toBe('mtls');

    const third = await toPem(await estclient('third', 'cert-0-0.pkcs7', '-r', ...presented));
    const renewed = await server.check(third, { subject: 'CN=libest-device', key });
    expect(new Set([issued.serial, again.serial, renewed.serial]).size).toBe(3);
  });

  test('gets a key that the server made', async () => {
    // It cannot take keys of fewer than 256 base64 characters, so no EC keys: the kind is that of the request's key.
    const request = server.file('client/libest-rsa.key');
    await run('openssl', ['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', request]);
    const password = ['-u', 'libest', '-h', await server.createOtp('libest-keygen')];
    const args = ['-q', '-x', request, ...password, '--common-name', 'libest-keygen'];
    const pkcs7 = await estclient('keygen', 'cert-0-0.pkcs7', ...args);
    const base64 = readFileSync(join(dirname(pkcs7), 'key-0-0.key'), 'latin1');
    const key = server.file('client/libest-made.key');
    writeFileSync(key, encodePem('PRIVATE KEY', Buffer.from(base64, 'base64')));
    await server.check(await toPem(pkcs7), { subject: 'CN=libest-keygen', key });
  });

  test('enrolls with the channel binding in its challengePassword (RFC 7030 §3.5)', async () => {
    const key = await newKey('libest-pop');
    const password = ['-u', 'libest', '-h', await server.createOtp('libest-pop')];
    const args = ['-e', '-z', '-x', key, ...password, '--common-name', 'libest-pop'];
    const pem = await toPem(await estclient('pop', 'cert-0-0.pkcs7', ...args));
    await server.check(pem, { subject: 'CN=libest-pop', key });
  });
});
