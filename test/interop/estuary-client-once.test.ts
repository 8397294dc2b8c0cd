/** The single operations of `estuary client` against Estuary and libest's `estserver`. */
import { spawn } from 'node:child_process';
import { createPrivateKey, createPublicKey, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasLibest, startLibest } from '../support/libest.ts';
import { estuary as command, type Done } from '../support/local-command.ts';
import { buildCsr, commonName, makeKey } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { liveVersion } from '../support/estuary-client.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { usePreSharedSecret, PRE_SHARED } from '../support/server-key.ts';
import { killed } from '../support/spawned.ts';
import { until } from '../support/until.ts';

const KEK = randomBytes(32);
let estuary: Estuary;
const file = (name: string, content: string | Buffer): string => {
  writeFileSync(join(estuary.dir, name), content);
  return join(estuary.dir, name);
};

/** Key and certificate belong together. */
function expectPair({ code, out, err }: Done): void {
  expect([code, err]).toEqual([0, expect.not.stringContaining('error') as unknown]);
  const certificate = new X509Certificate(out.slice(out.indexOf('-----BEGIN CERTIFICATE')));
  expect(createPublicKey(createPrivateKey(out)).equals(certificate.publicKey)).toBe(true);
}

/** `enroll` into a folder, `status`, `renew`, and `run` for a folder without a certificate. */
async function expectKept(enrolled: Promise<Done>, folder: string): Promise<void> {
  expect(await enrolled).toMatchObject({ code: 0 });
  const config = join(folder, 'client.toml');
  expect(await command(['client', 'status', '--config', config])).toMatchObject({ code: 0 });
  expect(await command(['client', 'renew', '--config', config, '--force'])).toMatchObject({ code: 0 });
  expect(liveVersion(folder)).toBe(2);
  for (const name of ['live', 'versions', 'state.json']) rmSync(join(folder, name), { recursive: true });
  const child = spawn(NODE, [SERVER, 'client', 'run', '--config', config], { stdio: 'ignore' });
  const gone = once(child, 'exit');
  await until('the daemon has a certificate', () => existsSync(join(folder, 'live')));
  child.kill('SIGTERM');
  expect(await gone).toEqual([0, null]);
}

describe('Estuary', () => {
  beforeAll(async () => {
    estuary = await Estuary.start({
      configure(config, dir) {
        usePreSharedSecret(config, dir);
        writeFileSync(join(dir, 'kek.bin'), KEK);
        section(config, 'serverkeygen')['keys'] = [{ id: '6b31', symmetric_key_file: 'kek.bin' }];
        section(config, 'est')['require_pop_linking'] = false;
        caSection(config)['csrattrs'] = { key_type: 'ec:P-384' };
      },
    });
  });
  afterAll(() => estuary.stop());

  const client = (...args: readonly string[]): Promise<Done> => {
    const url = `https://localhost:${estuary.server.port('est')}`;
    return command(['client', ...args, '--url', url, '--ca', join(estuary.dir, 'ca/root.pem')]);
  };
  const password = async (name: string): Promise<readonly string[]> => {
    const { token } = await estuary.otp({ client_id: name });
    return ['--otp-file', file(`${name}.otp`, `${token}\n`)];
  };

  test('cacerts and csrattrs', async () => {
    const cas = await client('cacerts');
    expect(cas.out).toContain(new X509Certificate(estuary.root).toString().trim());
    expect(await client('csrattrs')).toMatchObject({ code: 0, out: expect.stringContaining('ec:P-384') as unknown });
  });

  test('enroll with a request from elsewhere, then reenroll with a new key from elsewhere', async () => {
    const [first, second] = [makeKey('P-384'), makeKey('P-384')];
    const csr = (key: typeof first): string =>
      file('elsewhere.der', buildCsr(key, { subject: commonName('elsewhere') }));
    const issued = await client('enroll', '--csr', csr(first), ...(await password('elsewhere')));
    expect(issued.code).toBe(0);
    const cert = file('elsewhere.pem', issued.out);
    const renewed = await client(
      'reenroll',
      '--cert',
      cert,
      '--key',
      file('elsewhere.key', first.pem),
      '--csr',
      csr(second),
    );
    expect(renewed.code).toBe(0);
    expect(new X509Certificate(renewed.out).publicKey.equals(createPublicKey(second.pem))).toBe(true);
  });

  test('enroll for an existing key', async () => {
    const key = file('existing.key', makeKey('P-384').pem);
    const args = ['--key', key, '--subject', 'CN=existing', '--stdout', ...(await password('existing'))];
    expect(await client('enroll', ...args)).toMatchObject({ code: 0 });
  });

  test('enroll into a folder, status, renew and run', async () => {
    const { cert, key } = await estuary.enrolled(makeKey('P-384'), 'kept');
    const identity = ['--cert', file('kept.pem', cert), '--key', file('kept.key', key)];
    const folder = join(estuary.dir, 'kept-folder');
    await expectKept(client('enroll', '--subject', 'CN=kept', '--out', folder, ...identity), folder);
  });

  test.each([
    ['the one-time password', () => []],
    ['a shared key', () => ['--kek-file', join(estuary.dir, 'kek.bin'), '--kek-id', '6b31']],
    ['an EC key', () => ['--decrypt-key', file('decrypt-ec.key', makeKey('P-384').pem)]],
    ['an RSA key', () => ['--decrypt-key', file('decrypt-rsa.key', makeKey('rsa2048').pem)]],
  ] as const)('serverkeygen with a key that is encrypted for %s', async (name, args) => {
    const id = name.replaceAll(' ', '-');
    expectPair(await client('serverkeygen', '--subject', `CN=${id}`, ...args(), ...(await password(id))));
  });

  test('serverkeygen with the pre-shared secret', async () => {
    const { cert, key } = await estuary.enrolled(makeKey('P-384'), 'shared');
    const identity = ['--cert', file('shared.pem', cert), '--key', file('shared.key', key)];
    const secret = ['--key-password-file', file('secret', `${PRE_SHARED}\n`)];
    expectPair(await client('serverkeygen', '--subject', 'CN=shared', ...identity, ...secret));
  });
});

describe.skipIf(!hasLibest())("libest's estserver", () => {
  let libest: Awaited<ReturnType<typeof startLibest>>;
  let identity: readonly string[];

  beforeAll(async () => {
    // For its PKI.
    estuary = await Estuary.start();
    libest = await startLibest(estuary.dir);
    const { cert, key } = await estuary.enrolled(makeKey());
    identity = ['--cert', file('first.pem', cert), '--key', file('first.key', key)];
  });
  afterAll(async () => {
    await killed(libest.process);
    await estuary.stop();
  });

  const client = (...args: readonly string[]): Promise<Done> => {
    const url = `https://localhost:${libest.port}`;
    return command(['client', ...args, '--url', url, '--ca', join(estuary.dir, 'ca/root.pem')]);
  };

  test('cacerts, csrattrs, enroll with a request and with a key from elsewhere, reenroll with and without a new key', async () => {
    expect((await client('cacerts')).out).toContain(new X509Certificate(estuary.root).toString().trim());
    expect(await client('csrattrs')).toMatchObject({
      code: 0,
      out: expect.stringContaining('emailAddress') as unknown,
    });
    const csr = file('libest.der', buildCsr(makeKey(), { subject: commonName('libest') }));
    expect(await client('enroll', '--csr', csr, ...identity)).toMatchObject({ code: 0 });
    const existing = makeKey();
    const [, cert = '', , key = ''] = identity;
    const forKey = ['--key', file('libest.key', existing.pem), '--cert', cert, '--cert-key', key];
    const issued = await client('enroll', ...forKey, '--subject', 'CN=libest', '--stdout');
    expect(new X509Certificate(issued.out).publicKey.equals(createPublicKey(existing.pem))).toBe(true);
    expect(await client('reenroll', ...identity)).toMatchObject({ code: 0 });
    expect(await client('reenroll', ...identity, '--csr', csr)).toMatchObject({ code: 0 });
  });

  test('enroll into a folder, status, renew and run', async () => {
    const folder = join(estuary.dir, 'libest-folder');
    await expectKept(client('enroll', '--subject', 'CN=libest', '--out', folder, ...identity), folder);
  });

  test('serverkeygen', async () => {
    expectPair(await client('serverkeygen', '--subject', 'CN=libest', '--key-type', 'rsa:2048', ...identity));
  });
});
