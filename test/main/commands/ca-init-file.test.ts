/** `ca init` for a CA with driver = "file": the key in its file, and the certificate. */
import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPrivateKey } from '../../../src/config/material/reader.ts';
import { GENERATED_KEY_TYPES } from '../../../src/pki/x509/key-pair.ts';
import { parsePemCertificates, verifyCertificateSignature } from '../../../src/pki/x509/certificate.ts';
import { configFolder, toml, type ConfigFolder } from '../../config/support.ts';
import { estuary as command } from '../../support/local-command.ts';

const NOW = Math.floor(Date.now() / 1000) * 1000;
let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const path = (name: string): string => `${folder.path}/${name}`;

/** A configuration with one CA, whose files are to be made. */
async function configure(name: string): Promise<readonly string[]> {
  const ca = [
    ...['[[ca]]', 'label = "made"', 'default = true', 'driver = "file"', `certificate = "${name}.pem"`],
    ...['[ca.file]', `private_key = "${name}.key"`, ''],
  ].join('\n');
  await folder.write('est.toml', toml('', { ca }));
  return ['--config', path('est.toml'), '--ca', 'made'];
}

const init = (...args: readonly string[]) => command(['ca', 'init', ...args], { now: () => NOW });

test.each(GENERATED_KEY_TYPES.filter((type) => type !== 'rsa:4096'))('a root with a key of %s', async (type) => {
  const name = type.replace(':', '-');
  const done = await init(...(await configure(name)), '--key-type', type, '--subject', 'CN=Root,O=Example');
  expect(done).toMatchObject({ code: 0, err: '' });
  expect(done.out).toContain(`key          ${type}\n`);
  const [root] = parsePemCertificates(readFileSync(path(`${name}.pem`), 'latin1'));
  if (root === undefined) throw new Error('no certificate');
  expect(root).toMatchObject({ isCa: true, publicKey: { keyType: type } });
  await expect(verifyCertificateSignature(root, root)).resolves.toBe(true);
  expect(statSync(path(`${name}.key`)).mode & 0o777).toBe(0o600);
  const key = await readPrivateKey(path(`${name}.key`));
  expect(createPublicKey(key).export({ format: 'der', type: 'spki' })).toEqual(root.spki);
});

test('overwrites neither the key nor the certificate, and goes on with the key that is there', async () => {
  const args = await configure('twice');
  expect((await init(...args)).code).toBe(0);
  const key = readFileSync(path('twice.key'));
  const again = await init(...args);
  expect(again).toMatchObject({ code: 1 });
  expect(again.err).toContain('twice.pem already exists');

  const csr = path('twice.csr');
  const refused = await init(...args, '--csr', csr);
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.err).toContain('already exists');
  expect(existsSync(csr)).toBe(false);
  expect(await init(...args, '--csr', csr, '--use-existing-key')).toMatchObject({ code: 0 });
  expect(readFileSync(csr, 'latin1')).toContain('CERTIFICATE REQUEST');
  expect(readFileSync(path('twice.key'))).toEqual(key);
});

test('a key that is there without a certificate is not replaced', async () => {
  const args = await configure('lonely');
  await folder.write('lonely.key', 'mine');
  const done = await init(...args);
  expect(done).toMatchObject({ code: 1 });
  expect(done.err).toContain('lonely.key already exists (--use-existing-key)');
  expect(readFileSync(path('lonely.key'), 'utf8')).toBe('mine');
  expect(existsSync(path('lonely.pem'))).toBe(false);
});
