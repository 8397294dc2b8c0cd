/** OCSP requests and responses (RFC 6960, RFC 5019 for the lightweight profile). */
import { createHash } from 'node:crypto';
import {
  children,
  contextConstructed,
  contextPrimitive,
  type DerElement,
  DerError,
  DerReader,
  explicit,
  generalizedTime,
  integerBytes,
  octetString,
  oid,
  NULL,
  parseDer,
  readAlgorithm,
  readFields,
  readInteger,
  sequence,
  Tag,
  tlv,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { type Certificate, serialHex, isIssuedBy } from '../x509/certificate.ts';
import { type CrlReason, encodeCrlReason } from '../x509/crl.ts';
import {
  duplicateExtension,
  encodeExtensions,
  type Extension,
  findExtension,
  parseExtensions,
} from '../x509/extensions.ts';
import { formatName } from '../x509/name.ts';
import { keyOctets } from '../x509/public-key.ts';
import { defaultSignatureAlgorithm } from '../x509/signature-algorithms.ts';

/** Identifies the certificate whose status is requested. */
export interface CertId {
  /** As received; the response repeats it. */
  readonly der: Buffer;
  readonly hashAlgorithm: string;
  readonly issuerNameHash: Buffer;
  readonly issuerKeyHash: Buffer;
  readonly serialNumber: string;
}

export interface OcspRequest {
  readonly certIds: readonly CertId[];
  /** The nonce extension's value as received, an OCTET STRING (RFC 9654 §2.1); undefined without the extension. */
  readonly nonce: Buffer | undefined;
}

/** More than clients send in one request; each costs a lookup. */
const MAX_CERT_IDS = 32;
/** RFC 9654 §2.1. */
const MAX_NONCE_OCTETS = 128;

/**
 * Parses an OCSPRequest. Ignores its signature: anyone may request a status.
 * @throws DerError for malformed input, an empty or too large request, or an unknown critical extension
 */
export function parseOcspRequest(der: Buffer): OcspRequest {
  const outer = DerReader.of(der, 'OCSPRequest');
  const tbs = outer.enter(Tag.SEQUENCE, 'tbsRequest');
  outer.optional(contextConstructed(0), 'optionalSignature');
  outer.end();
  const version = tbs.optional(contextConstructed(0), 'version');
  if (version !== undefined && readInteger(parseDer(version.value, Tag.INTEGER, 'version')) !== 0)
    throw new DerError('OCSPRequest.version: unknown');
  tbs.optional(contextConstructed(1), 'requestorName');
  const requests = children(tbs.next(Tag.SEQUENCE, 'requestList').value, 'Request');
  const extensions = knownExtensions(tbs.optional(contextConstructed(2), 'requestExtensions')?.value);
  tbs.end();
  if (requests.length === 0 || requests.length > MAX_CERT_IDS)
    throw new DerError(`OCSPRequest.requestList: not 1 to ${MAX_CERT_IDS} requests`);
  return {
    certIds: requests.map(parseRequest),
    nonce: nonceOf(extensions),
  };
}

function parseRequest(element: DerElement): CertId {
  return readFields(element, 'Request', (fields) => {
    const certId = parseCertId(fields.next(Tag.SEQUENCE, 'reqCert'));
    knownExtensions(fields.optional(contextConstructed(0), 'singleRequestExtensions')?.value);
    return certId;
  });
}

function parseCertId(element: DerElement): CertId {
  return readFields(element, 'CertID', (fields) => {
    const { oid: hashAlgorithm, parameters } = readAlgorithm(fields.next(Tag.SEQUENCE, 'hashAlgorithm'));
    // Other parameters would allow unlimited CertIDs for one certificate, each with its own cached response.
    if (parameters?.raw.equals(NULL) === false) throw new DerError('CertID.hashAlgorithm.parameters: not NULL');
    return {
      der: element.raw,
      hashAlgorithm,
      issuerNameHash: fields.octets('issuerNameHash'),
      issuerKeyHash: fields.octets('issuerKeyHash'),
      serialNumber: serialHex(integerBytes(fields.next(Tag.INTEGER, 'serialNumber'), 'CertID.serialNumber')),
    };
  });
}

function knownExtensions(der: Buffer | undefined): readonly Extension[] {
  if (der === undefined) return [];
  const extensions = parseExtensions(der);
  if (duplicateExtension(extensions) !== undefined) throw new DerError('OCSPRequest: an extension occurs twice');
  if (extensions.some((extension) => extension.critical && extension.oid !== OID.ocspNonce))
    throw new DerError('OCSPRequest: an unknown critical extension');
  return extensions;
}

function nonceOf(extensions: readonly Extension[]): Buffer | undefined {
  const nonce = findExtension(extensions, OID.ocspNonce)?.value;
  if (nonce === undefined) return undefined;
  const { length } = parseDer(nonce, Tag.OCTET_STRING, 'Nonce').value;
  if (length === 0 || length > MAX_NONCE_OCTETS)
    throw new DerError(`OCSPRequest: a nonce of ${length} octets; it must have 1 to ${MAX_NONCE_OCTETS}`);
  return nonce;
}

// --- whose certificate -----------------------------------------------------------------------------------------

const HASHES: Readonly<Record<string, string>> = {
  [OID.sha1]: 'sha1',
  [OID.sha256]: 'sha256',
  [OID.sha384]: 'sha384',
  [OID.sha512]: 'sha512',
};

/**
 * Whether a CertID names a certificate of this issuer; false for an unknown hash algorithm.
 * @param issuer DER Name and DER SubjectPublicKeyInfo of the CA
 */
export function isOfIssuer(certId: CertId, issuer: { readonly name: Buffer; readonly spki: Buffer }): boolean {
  const hash = HASHES[certId.hashAlgorithm];
  if (hash === undefined) return false;
  const digest = (bytes: Buffer): Buffer => createHash(hash).update(bytes).digest();
  return (
    digest(issuer.name).equals(certId.issuerNameHash) && digest(keyOctets(issuer.spki)).equals(certId.issuerKeyHash)
  );
}

// --- responses -------------------------------------------------------------------------------------------------

export type OcspStatus =
  | { readonly status: 'good' | 'unknown' }
  | { readonly status: 'revoked'; readonly revocationTime: Date; readonly reason: CrlReason };

interface ResponseInput {
  /** DER Name of the certificate whose key signs. */
  readonly responder: Buffer;
  readonly producedAt: Date;
  readonly nextUpdate: Date;
  readonly statuses: readonly { readonly certId: CertId; readonly status: OcspStatus; readonly thisUpdate: Date }[];
  readonly nonce: Buffer | undefined;
}

/** DER ResponseData to be signed; identifies the responder by name, because GnuTLS finds no issuer by its key. */
export function buildResponseData(input: ResponseInput): Buffer {
  const nextUpdate = explicit(0, generalizedTime(input.nextUpdate));
  const singles = input.statuses.map(({ certId, status, thisUpdate }) =>
    sequence(certId.der, encodeStatus(status), generalizedTime(thisUpdate), nextUpdate),
  );
  const nonce =
    input.nonce === undefined
      ? []
      : [explicit(1, encodeExtensions([{ oid: OID.ocspNonce, critical: false, value: input.nonce }]))];
  return sequence(explicit(1, input.responder), generalizedTime(input.producedAt), sequence(...singles), ...nonce);
}

function encodeStatus(status: OcspStatus): Buffer {
  switch (status.status) {
    case 'good':
      return tlv(contextPrimitive(0));
    case 'unknown':
      return tlv(contextPrimitive(2));
    case 'revoked':
      return tlv(
        contextConstructed(1),
        generalizedTime(status.revocationTime),
        ...(status.reason === 'unspecified' ? [] : [explicit(0, encodeCrlReason(status.reason))]),
      );
  }
}

/** DER OCSPResponse `successful` around a DER BasicOCSPResponse. */
export function successfulResponse(basic: Buffer): Buffer {
  return sequence(responseStatus(0), explicit(0, sequence(oid(OID.ocspBasic), octetString(basic))));
}

const FAILURES = { malformedRequest: 1, internalError: 2, tryLater: 3, unauthorized: 6 } as const;

/** DER OCSPResponse with an error status; never signed (RFC 6960 §2.3). */
export function failureResponse(reason: keyof typeof FAILURES): Buffer {
  return sequence(responseStatus(FAILURES[reason]));
}

const responseStatus = (value: number): Buffer => tlv(Tag.ENUMERATED, Uint8Array.of(value));

/** Requirements for a CA's delegated OCSP responder certificate (RFC 6960 §2.6, §4.2.2.2). */

/** Reasons why relying parties would reject this certificate as the CA's responder; does not check validity dates. */
export async function ocspDelegateProblems(certificate: Certificate, ca: Certificate): Promise<string[]> {
  const problems: string[] = [];
  if (!(await isIssuedBy(certificate, ca)))
    problems.push(`"${formatName(certificate.subject)}" was not issued by the CA`);
  if (certificate.extKeyUsage?.includes(OID.OCSPSigning) !== true)
    problems.push('is not for OCSP responders (extKeyUsage OCSPSigning)');
  if (certificate.keyUsage?.includes('digitalSignature') === false)
    problems.push('may not sign (keyUsage without digitalSignature)');
  if (defaultSignatureAlgorithm(certificate.publicKey.keyType) === undefined)
    problems.push(`has a key of the type ${certificate.publicKey.keyType}, which is not supported`);
  return problems;
}

/** Whether id-pkix-ocsp-nocheck exempts the responder's certificate from status checks (RFC 6960 §4.2.2.2.1). */
export function hasNoCheck(certificate: Certificate): boolean {
  return findExtension(certificate.extensions, OID.ocspNoCheck) !== undefined;
}
