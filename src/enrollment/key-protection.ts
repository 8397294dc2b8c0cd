/** How a generated private key is protected, decided before a key is generated or a token is used (docs/guides/serverkeygen.md). */
import type { Identity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import type { Config } from '../config/schema.ts';
import { badRequest, type EstuaryError } from '../errors.ts';
import { parseContentInfo, buildSignedData, type CmsSigner, issuerAndSerialNumber } from '../pki/cms/cms.ts';
import { encryptPrivateKey } from '../pki/cms/encrypted-private-key.ts';
import {
  buildEnvelopedData,
  parseSMimeCapabilities,
  type Recipient,
  type SMimeCapability,
} from '../pki/cms/enveloped-data.ts';
import { aesBits, type AesBits, CBC_OIDS, WRAP_OIDS } from '../pki/cms/key-wrap.ts';
import { DerError, parseDer, sequence, Tag, unlessMalformed } from '../pki/der/der.ts';
import { OID } from '../pki/der/oids.ts';
import { type CsrContent, singleValue } from '../pki/pkcs10/csr-content.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { type PublicKeyInfo, publicKeyProblem, subjectKeyIdentifier } from '../pki/x509/public-key.ts';

/** `[serverkeygen]` with its files: known key identifiers, and the protection. */
export interface KeyProtectionSettings {
  readonly encryption: 'optional' | 'password' | 'required';
  /** The pre-shared secret of `password`. */
  readonly password: Buffer | undefined;
  /** AES key-encryption keys by hex of their identifier. */
  readonly symmetricKeys: ReadonlyMap<string, Buffer>;
  /** Certificates by hex of the identifier. */
  readonly certificates: ReadonlyMap<string, Certificate>;
}

/** @param certificates of `[[serverkeygen.keys]]`, by hex of the identifier */
export function keyProtection(
  { serverkeygen }: Pick<Config, 'serverkeygen'>,
  certificates: ReadonlyMap<string, Certificate>,
): KeyProtectionSettings {
  const { encryption, password, keys } = serverkeygen;
  const symmetricKeys = new Map<string, Buffer>();
  for (const { id, symmetric_key: key } of keys)
    if (key !== undefined) symmetricKeys.set(id.toLowerCase(), key.reveal());
  return { encryption, password: password?.reveal(), symmetricKeys, certificates };
}

/** Algorithms for encrypting a generated key: the strongest that the client's SMIMECapabilities allow. */
interface Algorithms {
  readonly contentBits: AesBits;
  readonly wrapBits: AesBits;
}

const STRONGEST_FIRST: readonly AesBits[] = [256, 192, 128];
const KEY_TRANSPORT = [OID.rsaEncryption, OID.rsaOAEP];
/** Arcs of the key agreement schemes of RFC 5753 §7.1.4: X9.63 with SHA-1, and SECG's with SHA-2. */
const KEY_AGREEMENT = /^1\.3\.(?:133\.16\.840\.63\.0|132\.1\.1[1-5])(?:\.|$)/;

/**
 * AES-256 without capabilities. Otherwise the content encryption must be among them, and the key management too if they
 * list any.
 * @throws EstuaryError 400 `CAPABILITIES_WITHOUT_OVERLAP`
 */
function chooseAlgorithms(recipient: Recipient, capabilities: readonly SMimeCapability[] | undefined): Algorithms {
  const ownWrap = recipient.kind === 'kek' ? aesBits(recipient.key) : 256;
  if (capabilities === undefined) return { contentBits: 256, wrapBits: ownWrap };
  const named = new Set(capabilities.map(({ oid }) => oid));
  const contentBits = STRONGEST_FIRST.find((bits) => named.has(CBC_OIDS[bits]));
  if (contentBits === undefined) throw noOverlap('AES in CBC mode');
  if (recipient.kind === 'publicKey') checkScheme(recipient.publicKey.keyType, named);
  const wraps = new Set(capabilities.flatMap(({ oid, inner }) => [oid, inner ?? oid]));
  const listed = STRONGEST_FIRST.filter((bits) => wraps.has(WRAP_OIDS[bits]));
  if (recipient.kind === 'kek') {
    if (listed.length > 0 && !listed.includes(ownWrap)) throw noOverlap(`the ${ownWrap}-bit AES key wrap`);
    return { contentBits, wrapBits: ownWrap };
  }
  return { contentBits, wrapBits: listed[0] ?? ownWrap };
}

function checkScheme(keyType: string, named: ReadonlySet<string>): void {
  if (keyType.startsWith('rsa:')) {
    if (KEY_TRANSPORT.some((oid) => named.has(oid)) && !named.has(OID.rsaOAEP)) throw noOverlap('RSAES-OAEP');
    return;
  }
  const ours = keyType === 'ec:P-256' ? OID.dhSinglePassStdDHSha256Kdf : OID.dhSinglePassStdDHSha384Kdf;
  if ([...named].some((oid) => KEY_AGREEMENT.test(oid)) && !named.has(ours))
    throw noOverlap(`ECDH with ${keyType === 'ec:P-256' ? 'SHA-256' : 'SHA-384'}`);
}

const noOverlap = (missing: string): ReturnType<typeof badRequest> =>
  badRequest(
    'CAPABILITIES_WITHOUT_OVERLAP',
    `The CSR's SMIMECapabilities do not list ${missing}, which the server uses to encrypt the private key.`,
  );

export type KeyProtection =
  | { readonly form: 'tls' }
  | { readonly form: 'password'; readonly password: Buffer }
  | {
      readonly form: 'enveloped';
      readonly recipient: Recipient;
      readonly contentBits: AesBits;
      readonly wrapBits: AesBits;
    };

/** Larger RSA keys would block the event loop for more than 0.2 ms. */
const MAX_RSA_BITS = 4096;

/**
 * The protection that the CSR requests, otherwise the configured one. Never falls back to a weaker form.
 * @throws EstuaryError 400 `KEY_IDENTIFIER_MALFORMED`, `KEY_IDENTIFIER_AMBIGUOUS`, `KEY_IDENTIFIER_UNKNOWN`,
 * `KEY_IDENTIFIER_UNSUITABLE`, `CAPABILITIES_MALFORMED`, `CAPABILITIES_WITHOUT_OVERLAP`, `KEY_ENCRYPTION_REQUIRED`,
 * `KEY_PASSWORD_MISSING`
 */
export function chooseProtection(
  settings: KeyProtectionSettings,
  csr: CsrContent,
  identity: Identity,
  now: number,
): KeyProtection {
  const symmetric = identifier(csr, OID.decryptKeyIdentifier, 'DecryptKeyIdentifier');
  const asymmetric = identifier(csr, OID.asymmetricDecryptKeyIdentifier, 'AsymmetricDecryptKeyIdentifier');
  const capabilities = readCapabilities(csr);
  if (symmetric !== undefined && asymmetric !== undefined)
    throw badRequest('KEY_IDENTIFIER_AMBIGUOUS', 'The CSR names both a symmetric and an asymmetric key.');
  if (symmetric === undefined && asymmetric === undefined) return withoutIdentifier(settings, identity);
  const recipient =
    symmetric === undefined
      ? asymmetricRecipient(asymmetric ?? Buffer.alloc(0), settings, csr, identity, now)
      : symmetricRecipient(symmetric, settings);
  return { form: 'enveloped', recipient, ...chooseAlgorithms(recipient, capabilities) };
}

function withoutIdentifier({ encryption, password }: KeyProtectionSettings, identity: Identity): KeyProtection {
  if (encryption === 'optional') return { form: 'tls' };
  if (encryption === 'required')
    throw badRequest(
      'KEY_ENCRYPTION_REQUIRED',
      'The server sends private keys only encrypted: add a DecryptKeyIdentifier or an AsymmetricDecryptKeyIdentifier to the CSR.',
    );
  // Only a password that this request proved; an attacker could choose any other.
  const chosen = identity.method === 'otp' ? identity.password : password;
  if (chosen === undefined)
    throw badRequest(
      'KEY_PASSWORD_MISSING',
      'There is no password to encrypt the private key with: add a DecryptKeyIdentifier or an AsymmetricDecryptKeyIdentifier to the CSR, set serverkeygen.password_file or serverkeygen.password_env on the server, or use a one-time password.',
    );
  return { form: 'password', password: chosen };
}

/** The octets of a key identifier: an OCTET STRING (RFC 4108 §3.1.4, RFC 7030 §4.4.1.2). */
function identifier(csr: CsrContent, type: string, name: string): Buffer | undefined {
  const octets = unlessMalformed(() => {
    const value = singleValue(csr.attributes, type);
    return value && parseDer(value, Tag.OCTET_STRING).value;
  }, Buffer.alloc(0));
  if (octets?.length === 0)
    throw badRequest('KEY_IDENTIFIER_MALFORMED', `The CSR's ${name} is not a single OCTET STRING that is not empty.`);
  return octets;
}

function readCapabilities(csr: CsrContent): ReturnType<typeof parseSMimeCapabilities> | undefined {
  try {
    const value = singleValue(csr.attributes, OID.smimeCapabilities);
    return value && parseSMimeCapabilities(value);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw badRequest('CAPABILITIES_MALFORMED', `The CSR's SMIMECapabilities are not valid DER: ${error.message}.`);
  }
}

const unknown = (): EstuaryError =>
  badRequest('KEY_IDENTIFIER_UNKNOWN', 'The server does not know the key that the CSR names for decryption.');
const unsuitable = (reason: string): EstuaryError =>
  badRequest('KEY_IDENTIFIER_UNSUITABLE', `The key that the CSR names for decryption ${reason}.`);

function symmetricRecipient(keyIdentifier: Buffer, { symmetricKeys }: KeyProtectionSettings): Recipient {
  const key = symmetricKeys.get(keyIdentifier.toString('hex'));
  if (key === undefined) throw unknown();
  return { kind: 'kek', keyIdentifier, key };
}

function asymmetricRecipient(
  keyIdentifier: Buffer,
  { certificates }: KeyProtectionSettings,
  csr: CsrContent,
  identity: Identity,
  now: number,
): Recipient {
  const configured = certificates.get(keyIdentifier.toString('hex'));
  if (configured !== undefined) return certificateRecipient(configured, now);
  if (identity.method === 'mtls' && keyIdentifierOf(identity.certificate).some((own) => own.equals(keyIdentifier)))
    return certificateRecipient(identity.certificate, now);
  const [own] = subjectKeyIdentifierOf(csr.publicKey.spki);
  if (own?.equals(keyIdentifier) !== true) throw unknown();
  checkKey(csr.publicKey);
  return { kind: 'publicKey', rid: { kind: 'subjectKeyIdentifier', keyIdentifier }, publicKey: csr.publicKey };
}

function keyIdentifierOf({ subjectKeyIdentifier: own, spki }: Certificate): Buffer[] {
  return own === undefined ? subjectKeyIdentifierOf(spki) : [own, ...subjectKeyIdentifierOf(spki)];
}

/** RFC 5280 §4.2.1.2 method 1; empty for an unusable key. */
function subjectKeyIdentifierOf(spki: Buffer): Buffer[] {
  return unlessMalformed(() => [subjectKeyIdentifier(spki)], []);
}

function certificateRecipient(certificate: Certificate, now: number): Recipient {
  const { publicKey, keyUsage } = certificate;
  if (now < certificate.notBefore.getTime() || now > certificate.notAfter.getTime())
    throw unsuitable('has a certificate that is not valid now');
  checkKey(publicKey);
  const needed = publicKey.algorithm === 'rsa' ? 'keyEncipherment' : 'keyAgreement';
  if (keyUsage?.includes(needed) === false) throw unsuitable(`has a certificate without the key usage ${needed}`);
  return { kind: 'publicKey', rid: issuerAndSerialNumber(certificate), publicKey };
}

function checkKey(publicKey: PublicKeyInfo): void {
  const problem = publicKeyProblem(publicKey);
  if (problem !== undefined) throw unsuitable(problem.reason);
  if (publicKey.algorithm !== 'rsa' && publicKey.algorithm !== 'ec')
    throw unsuitable(`is of the type ${publicKey.keyType}, which cannot encrypt`);
  if (publicKey.rsa !== undefined && publicKey.rsa.modulus.length * 8 > MAX_RSA_BITS)
    throw unsuitable(`is RSA with more than ${MAX_RSA_BITS} bits`);
  // Whether OpenSSL accepts it; the key object is cached for the encryption.
  if (unlessMalformed(() => publicKey.keyObject, undefined) === undefined) throw unsuitable('is not a usable key');
}

/** A generated private key, encoded for delivery (RFC 7030 §4.4.2). */
export interface KeyPart {
  readonly contentType: string;
  /** The caller zeroes it after sending. */
  readonly der: Buffer;
}

const PKCS8 = 'application/pkcs8';
const SERVER_GENERATED_KEY = 'application/pkcs7-mime; smime-type=server-generated-key';

/**
 * Rejects what {@link protectKey} does not support, before a key is generated. @throws EstuaryError 400
 * `KEY_FORM_UNSUPPORTED`
 */
export function checkKeyForm(ca: Ca, { form }: KeyProtection): void {
  if (form === 'enveloped') signerOf(ca);
}

function signerOf({ driver: { cmsSigner } }: Ca): CmsSigner {
  if (cmsSigner === undefined)
    throw badRequest('KEY_FORM_UNSUPPORTED', 'This CA cannot sign the package of an encrypted private key.');
  return cmsSigner;
}

/** @param pkcs8 DER PrivateKeyInfo; not retained @throws EstuaryError from the CA's signer */
export async function protectKey(ca: Ca, pkcs8: Buffer, protection: KeyProtection, now: Date): Promise<KeyPart> {
  if (protection.form === 'tls') return { contentType: PKCS8, der: Buffer.from(pkcs8) };
  if (protection.form === 'password')
    return { contentType: PKCS8, der: await encryptPrivateKey(pkcs8, protection.password) };
  // AsymmetricKeyPackage (RFC 5958 §2) with one key.
  const keyPackage = sequence(pkcs8);
  const message = await buildSignedData({
    contentType: OID.asymmetricKeyPackage,
    content: keyPackage,
    certificates: [ca.certificate.der],
    signers: [signerOf(ca)],
    signingTime: now,
  });
  try {
    // RFC 5652 §6.1: the content has the named type, so SignedData without ContentInfo.
    const { content } = parseContentInfo(message);
    const der = await buildEnvelopedData({ ...protection, contentType: OID.signedData, content });
    return { contentType: SERVER_GENERATED_KEY, der };
  } finally {
    keyPackage.fill(0);
    message.fill(0);
  }
}
