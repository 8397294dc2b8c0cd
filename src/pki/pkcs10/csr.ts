/** PKCS #10 certification requests (RFC 2986). Each error is a 400 with its own code. */
import { badRequest, EstuaryError } from '../../errors.ts';
import { type Attribute, parseAttributes } from '../cms/cms.ts';
import { contextConstructed, DerError, DerReader, unlessMalformed, type DerElement } from '../der/der.ts';
import { oidName } from '../der/oids.ts';
import { parseExtensions, type Extension } from '../x509/extensions.ts';
import { parseName } from '../x509/name.ts';
import { parsePublicKey, unreadableKey, type PublicKeyInfo } from '../x509/public-key.ts';
import {
  UnsupportedSignatureAlgorithm,
  algorithmFitsKey,
  parseSignatureAlgorithm,
  refusedName,
  verifySignature,
  type SignatureAlgorithm,
} from '../x509/signature-algorithms.ts';
import { readSigned } from '../x509/signed.ts';
import { checkedContent, checkKey, type CsrContent, EXTENSION_REQUESTS } from './csr-content.ts';

export interface RequestKey {
  /** As in `PublicKeyInfo`. */
  readonly keyType: string;
  /** Of the request's own signature; undefined if it has none and a registration authority vouches for the key. */
  readonly signatureAlgorithm: SignatureAlgorithm | undefined;
}

export interface Csr extends CsrContent {
  readonly signatureAlgorithm: SignatureAlgorithm;
  readonly signature: Buffer;
}

declare const verified: unique symbol;

/** A request whose signature proves possession of the private key; only {@link verifyCsr} creates it. */
export type VerifiedCsr = Csr & { readonly [verified]: true };

/**
 * @param der exactly one CertificationRequest
 * @throws EstuaryError 400: CSR_MALFORMED, CSR_VERSION, CSR_KEY_UNSUPPORTED, CSR_KEY_WEAK, CSR_SIGNATURE_ALGORITHM,
 * CSR_DUPLICATE_ATTRIBUTE, CSR_DUPLICATE_EXTENSION, CSR_SUBJECT_INVALID, CSR_SAN_INVALID
 */
export function parseCsr(der: Buffer): Csr {
  return reading(() => {
    const { content, algorithm, signature } = readCsr(der, parsePublicKey);
    checkKey(content.publicKey);
    const signatureAlgorithm = parseSignatureAlgorithm(algorithm);
    if (!algorithmFitsKey(signatureAlgorithm, content.publicKey))
      throw badRequest(
        'CSR_SIGNATURE_ALGORITHM',
        `The CSR's signature algorithm ${signatureAlgorithm.name} does not fit its ${content.publicKey.keyType} key.`,
      );
    return { ...checked(content), signatureAlgorithm, signature };
  });
}

/**
 * Parses a request for a server-generated key. Its own key and signature are ignored (RFC 7030 §4.4.1): any well-formed
 * key and any signature are accepted.
 * @throws EstuaryError 400 as {@link parseCsr}, except the codes about the key and the signature
 */
export function parseCsrWithoutProof(der: Buffer): CsrContent {
  return reading(() => checked(readCsr(der, lenientKey).content));
}

function lenientKey(spki: Buffer): PublicKeyInfo {
  return unlessMalformed(() => parsePublicKey(spki), undefined) ?? unreadableKey(spki);
}

function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof DerError ? malformed(error) : error;
  }
}

function malformed(error: DerError): EstuaryError {
  if (error instanceof UnsupportedSignatureAlgorithm)
    return badRequest(
      'CSR_SIGNATURE_ALGORITHM',
      `The CSR's signature algorithm ${refusedName(error.oid)} is not accepted.`,
    );
  return badRequest('CSR_MALFORMED', `The CSR is not valid DER: ${error.message}.`, { cause: error });
}

interface ReadCsr {
  readonly content: Pick<CsrContent, 'der' | 'info' | 'subject' | 'publicKey'> & {
    attributeSet: DerElement | undefined;
  };
  readonly algorithm: Buffer;
  readonly signature: Buffer;
}

function readCsr(der: Buffer, readKey: (spki: Buffer) => PublicKeyInfo): ReadCsr {
  const names = { whole: 'CertificationRequest', content: 'certificationRequestInfo', signature: 'signature' };
  const { content: info, algorithm, signature } = readSigned(der, names);

  const reader = new DerReader(info.value, 'CertificationRequestInfo');
  // RFC 2986 §4.1 has only 0; wolfSSL writes the version of a certificate. Nothing depends on it.
  const version = reader.integer('version');
  if (version < 0 || version > 2)
    throw badRequest('CSR_VERSION', `The CSR has version field ${version}; it must be 0.`);
  const subject = parseName(reader.sequence('subject'));
  const publicKey = readKey(reader.sequence('subjectPKInfo'));
  // RFC 2986 requires the attributes field, possibly empty; many clients omit it.
  const attributeSet = reader.optional(contextConstructed(0), 'attributes');
  reader.end();
  return { content: { der, info: info.raw, subject, publicKey, attributeSet }, algorithm, signature };
}

function checked({ attributeSet, ...content }: ReadCsr['content']): CsrContent {
  const attributes = attributeSet === undefined ? [] : parseAttributes(attributeSet.value);
  return checkedContent(content, attributes, requestedExtensions(attributes));
}

/** Of all extensionRequest attributes, in either form. What comes twice with the same octets counts once. */
function requestedExtensions(attributes: readonly Attribute[]): Extension[] {
  // RFC 5280 §4.1 requires at least one extension; OpenSSL accepts an empty list, and clients send it.
  const all = attributes
    .filter(({ oid }) => EXTENSION_REQUESTS.includes(oid))
    .flatMap(({ oid, values }) => {
      const [value, ...more] = values;
      if (value === undefined || more.length > 0) throw new DerError(`${oidName(oid)}: not exactly one value`);
      return parseExtensions(value);
    });
  const isSame = (a: Extension, b: Extension): boolean =>
    a.oid === b.oid && a.critical === b.critical && a.value.equals(b.value);
  return all.filter((extension, i) => all.findIndex((other) => isSame(other, extension)) === i);
}

/**
 * Proof of possession: verifies the request's signature with its own key.
 * @throws EstuaryError 400 CSR_KEY_INVALID (such as a point off its curve) or CSR_SIGNATURE_INVALID
 */
export async function verifyCsr(csr: Csr): Promise<VerifiedCsr> {
  if (!(await isSigned(csr))) throw badRequest('CSR_SIGNATURE_INVALID', "The CSR's signature is not valid.");
  return csr as VerifiedCsr;
}

async function isSigned(csr: Csr): Promise<boolean> {
  try {
    return await verifySignature(csr.signatureAlgorithm, csr.publicKey, csr.info, csr.signature);
  } catch (error) {
    throw badRequest('CSR_KEY_INVALID', "The CSR's public key is invalid.", { cause: error });
  }
}
