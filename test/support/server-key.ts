/** What a client does with the answer of serverkeygen: reads the parts, opens the key with openssl. */
import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { expect } from 'vitest';
import { section } from './estuary.ts';
import type { Answer } from './https.ts';
import { openssl } from './openssl.ts';
import { children, explicit, oid, parseDer, sequence, Tag } from '../../src/pki/der/der.ts';
import { parseCertsOnly } from '../../src/pki/cms/cms.ts';

/** What encrypts the keys of clients without a one-time password, once {@link usePreSharedSecret} has configured it. */
export const PRE_SHARED = 'pre-shared secret';

export function usePreSharedSecret(config: TomlTable, dir: string): void {
  writeFileSync(join(dir, 'password'), PRE_SHARED);
  section(config, 'serverkeygen')['password_file'] = 'password';
}

export interface ServerKeyAnswer {
  readonly certificate: X509Certificate;
  readonly keyType: string;
  /** The key part as it came. */
  readonly key: Buffer;
}

/** Reads the multipart to the letter: two parts, the certificate first, nothing before or after. */
export function readServerKey(answer: Answer): ServerKeyAnswer {
  expect(answer.status, answer.text).toBe(200);
  const [, boundary = ''] =
    /^multipart\/mixed; boundary=([A-Za-z0-9-]{1,70})$/.exec(String(answer.headers['content-type'])) ?? [];
  expect(boundary).not.toBe('');
  expect(answer.headers['content-length']).toBe(String(answer.body.length));
  const [before, first = '', second = '', after] = answer.text.split(`--${boundary}`);
  expect([before, after]).toEqual(['', '--\r\n']);
  const certificate = readPart(first);
  const key = readPart(second);
  expect(certificate.type).toBe('application/pkcs7-mime; smime-type=certs-only');
  const [der = Buffer.alloc(0)] = parseCertsOnly(certificate.der);
  return { certificate: new X509Certificate(der), keyType: key.type, key: key.der };
}

function readPart(text: string): { type: string; der: Buffer } {
  const [, type = '', base64 = ''] =
    /^\r\nContent-Type: ([^\r\n]+)\r\nContent-Transfer-Encoding: base64\r\n\r\n([A-Za-z0-9+/=\r\n]+)$/.exec(text) ?? [];
  return { type, der: Buffer.from(base64, 'base64') };
}

/** Asserts that the certificate is for this private key. */
export function expectMatch({ certificate }: ServerKeyAnswer, privateKey: KeyObject): void {
  const spki = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' });
  expect(spki(createPublicKey(privateKey))).toEqual(spki(certificate.publicKey));
}

/** A PrivateKeyInfo, or with a passphrase an EncryptedPrivateKeyInfo. */
export const readPkcs8 = (der: Buffer, passphrase?: string): KeyObject => {
  const key = { key: der, format: 'der', type: 'pkcs8' } as const;
  return createPrivateKey(passphrase === undefined ? key : { ...key, passphrase });
};

/**
 * `openssl cms -decrypt`, then `-verify` of the SignedData inside against the root, then the one key of the package.
 *
 * @param args how to decrypt
 * @param file makes paths in a folder of the test's own
 */
export function openEnveloped(
  { key }: ServerKeyAnswer,
  args: readonly string[],
  root: string,
  file: (name: string) => string,
): KeyObject {
  writeFileSync(file('enveloped.der'), key);
  const signedData = openssl(['cms', '-decrypt', '-inform', 'DER', '-binary', '-in', file('enveloped.der'), ...args]);
  // what was encrypted is SignedData; the openssl command wants ContentInfo around it
  writeFileSync(file('signed.der'), sequence(oid('1.2.840.113549.1.7.2'), explicit(0, signedData)));
  writeFileSync(file('root.pem'), root);
  const verify = ['cms', '-verify', '-inform', 'DER', '-binary', '-purpose', 'any', '-CAfile', file('root.pem')];
  const keyPackage = openssl([...verify, '-in', file('signed.der')]);
  const [one, ...more] = children(parseDer(keyPackage, Tag.SEQUENCE).value);
  expect(more).toEqual([]);
  return readPkcs8(one?.raw ?? Buffer.alloc(0));
}
