/** Server-generated private keys (RFC 7030 §4.4): requesting protection, and decryption. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { InputError } from '../pki/input-error.ts';
import { berToDer } from '../pki/der/ber.ts';
import { children, octetString, oid, parseDer, sequence, Tag } from '../pki/der/der.ts';
import { OID } from '../pki/der/oids.ts';
import { parseSignedData, verifySignerInfo, type SignedData, contentInfo } from '../pki/cms/cms.ts';
import { openEnvelopedData, type DecryptionKey } from '../pki/cms/enveloped-data.ts';
import { attribute } from '../pki/pkcs10/csr-builder.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import { describe } from '../errors.ts';
import { ClientError } from './client-error.ts';
import type { ServerKey } from './http/est-server.ts';
import type { CaCertificates } from './trust/anchors.ts';
import { findPath } from './trust/path.ts';

/** The key for which the server encrypts the new key. */
export interface KeyProtection {
  readonly key: DecryptionKey;
  /** The DecryptKeyIdentifier of a shared key, or the AsymmetricDecryptKeyIdentifier of a private key. */
  readonly identifier: Buffer;
}

const CAPABILITIES = [OID.aes256CBC, OID.aes128CBC, OID.aes256Wrap, OID.aes192Wrap, OID.aes128Wrap, OID.rsaOAEP];

/** DER attributes that request the protection (RFC 7030 §4.4.1.1, §4.4.1.2). */
export const protectionAttributes = ({ key, identifier }: KeyProtection): readonly Buffer[] => [
  attribute(OID.smimeCapabilities, sequence(...CAPABILITIES.map((capability) => sequence(oid(capability))))),
  attribute(
    Buffer.isBuffer(key) ? OID.decryptKeyIdentifier : OID.asymmetricDecryptKeyIdentifier,
    octetString(identifier),
  ),
];

interface OpenOptions {
  readonly protection: KeyProtection | undefined;
  /** For an encrypted PKCS #8. */
  readonly passwords: readonly string[];
  readonly cas: CaCertificates;
  readonly now: number;
}

/** @returns PKCS #8 and SubjectPublicKeyInfo. @throws ClientError `KEY_UNUSABLE` */
export async function openServerKey(
  { isEnveloped, der }: ServerKey,
  options: OpenOptions,
): Promise<{ readonly pem: string; readonly spki: Buffer }> {
  try {
    if (!isEnveloped && options.protection !== undefined)
      throw new InputError('it is not encrypted for the key that the request named');
    const key = isEnveloped ? await fromEnvelope(der, options) : fromPkcs8(der, options.passwords);
    const pem = key.export({ format: 'pem', type: 'pkcs8' });
    return { pem, spki: createPublicKey(key).export({ format: 'der', type: 'spki' }) };
  } catch (error) {
    throw new ClientError(
      'local',
      'KEY_UNUSABLE',
      `the private key from the server cannot be opened: ${describe(error)}`,
      {
        cause: error,
      },
    );
  }
}

function fromPkcs8(der: Buffer, passwords: readonly string[]): KeyObject {
  const [first, second] = children(parseDer(der, Tag.SEQUENCE, 'PrivateKeyInfo').value);
  const key = { key: der, format: 'der', type: 'pkcs8' } as const;
  // libest sends an RSAPrivateKey (RFC 8017 §A.1.2) as PKCS #8.
  if (second?.tag === Tag.INTEGER) return createPrivateKey({ ...key, type: 'pkcs1' });
  // A PrivateKeyInfo begins with its version, an EncryptedPrivateKeyInfo with an algorithm.
  if (first?.tag === Tag.INTEGER) return createPrivateKey(key);
  for (const passphrase of passwords)
    try {
      return createPrivateKey({ ...key, passphrase });
    } catch {
      // Try the next password.
    }
  throw new InputError(
    passwords.length === 0 ? 'it is encrypted, and no password is given' : 'the given password does not decrypt it',
  );
}

async function fromEnvelope(der: Buffer, { protection, cas, now }: OpenOptions): Promise<KeyObject> {
  if (protection === undefined) throw new InputError('it is encrypted for a key that the request did not name');
  const { contentType, content } = openEnvelopedData(der, protection.key);
  if (contentType !== OID.signedData) return fromPackage(content);
  const inner = berToDer(content);
  const [first] = children(parseDer(inner, Tag.SEQUENCE, 'SignedData').value);
  // RFC 5652 §6.1 requires the bare type; some servers send a ContentInfo.
  const signed = parseSignedData(first?.tag === Tag.OID ? inner : contentInfo(OID.signedData, inner));
  if (!(await isSignedByCa(signed, cas, now)))
    throw new InputError('its signature is not that of a certificate under a trusted CA');
  return fromPackage(signed.content ?? Buffer.alloc(0));
}

async function isSignedByCa(
  signed: SignedData,
  { anchors, intermediates }: CaCertificates,
  now: number,
): Promise<boolean> {
  const included = signed.certificates.map(parseCertificate);
  for (const signer of signed.signerInfos)
    for (const certificate of [...included, ...anchors, ...intermediates]) {
      if (!(await verifySignerInfo(signed, signer, certificate.publicKey))) continue;
      return (await findPath(certificate, anchors, [...intermediates, ...included], now)) !== undefined;
    }
  return false;
}

/** AsymmetricKeyPackage (RFC 5958 §2) with one key, or a bare PrivateKeyInfo. */
function fromPackage(der: Buffer): KeyObject {
  const [first] = children(parseDer(der, Tag.SEQUENCE, 'AsymmetricKeyPackage').value);
  return fromPkcs8(first?.tag === Tag.SEQUENCE ? first.raw : der, []);
}
