/** CMS SignedData (RFC 5652 §5): building and signing, for CMC and server-generated keys. */
import { createHash, type KeyObject } from 'node:crypto';
import {
  contextConstructed,
  contextPrimitive,
  DerError,
  explicit,
  integer,
  octetString,
  oid,
  parseDer,
  sequence,
  setOf,
  time,
  tlv,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { InputError } from '../input-error.ts';
import { type Certificate, serialInteger } from '../x509/certificate.ts';
import type { PublicKeyInfo } from '../x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  type HashName,
  type SignatureAlgorithm,
} from '../x509/signature-algorithms.ts';
import { DIGEST_OIDS, parseSignedData, type SignerIdentifier } from './cms.ts';

/** A key that signs CMS content: a local file or a CA's signer. */
export interface CmsSigner {
  readonly sid: SignerIdentifier;
  readonly digest: HashName;
  readonly signatureAlgorithm: SignatureAlgorithm;
  sign(data: Buffer): Promise<Buffer>;
}

export function issuerAndSerialNumber(certificate: Pick<Certificate, 'issuer' | 'serialNumber'>): SignerIdentifier {
  return { kind: 'issuerAndSerialNumber', issuer: certificate.issuer, serialNumber: certificate.serialNumber };
}

/** A signer with a private key in memory. EdDSA and ML-DSA use SHA-512 (RFC 8419 §2.3, RFC 9882 §3.3). */
export function keySigner(privateKey: KeyObject, publicKey: PublicKeyInfo, sid: SignerIdentifier): CmsSigner {
  const algorithm = defaultSignatureAlgorithm(publicKey.keyType);
  if (algorithm === undefined) throw new InputError(`a ${publicKey.keyType} key cannot sign CMS content`);
  return {
    sid,
    digest: algorithm.hash ?? 'sha512',
    signatureAlgorithm: algorithm,
    sign: (data) => createSignature(algorithm, privateKey, publicKey.keyType, data),
  };
}

interface SignedDataContent {
  readonly contentType: string;
  readonly content: Buffer;
  readonly certificates?: readonly Buffer[];
  readonly crls?: readonly Buffer[];
  readonly signers: readonly CmsSigner[];
  readonly signingTime: Date;
}

/** ContentInfo around SignedData (DER), each signer with contentType, messageDigest and signingTime. */
export async function buildSignedData(input: SignedDataContent): Promise<Buffer> {
  const { contentType, content, certificates = [], crls = [], signers } = input;
  const bySki = signers.some(({ sid }) => sid.kind === 'subjectKeyIdentifier');
  const version = contentType !== OID.data || bySki ? 3 : 1;
  const digests = [...new Set(signers.map(({ digest }) => digest))].map(digestAlgorithm);
  const infos = await Promise.all(signers.map((signer) => signerInfo(signer, input)));
  const signedData = sequence(
    integer(version),
    setOf(...digests),
    sequence(oid(contentType), explicit(0, octetString(content))),
    ...(certificates.length === 0 ? [] : [tlv(contextConstructed(0), ...certificates)]),
    ...(crls.length === 0 ? [] : [tlv(contextConstructed(1), ...crls)]),
    setOf(...infos),
  );
  return contentInfo(OID.signedData, signedData);
}

export function contentInfo(contentType: string, content: Buffer): Buffer {
  return sequence(oid(contentType), explicit(0, content));
}

/** A digest's AlgorithmIdentifier, without parameters (RFC 5754 §2). */
export const digestAlgorithm = (digest: HashName): Buffer => sequence(oid(DIGEST_OIDS[digest]));

async function signerInfo(signer: CmsSigner, input: SignedDataContent): Promise<Buffer> {
  const attributes = setOf(
    sequence(oid(OID.contentType), setOf(oid(input.contentType))),
    sequence(oid(OID.signingTime), setOf(time(input.signingTime))),
    sequence(oid(OID.messageDigest), setOf(octetString(createHash(signer.digest).update(input.content).digest()))),
  );
  const signature = await signer.sign(attributes);
  return sequence(
    integer(signer.sid.kind === 'subjectKeyIdentifier' ? 3 : 1),
    encodeSignerIdentifier(signer.sid),
    digestAlgorithm(signer.digest),
    tlv(contextConstructed(0), parseDer(attributes).value),
    signer.signatureAlgorithm.der,
    octetString(signature),
  );
}

export function encodeSignerIdentifier(sid: SignerIdentifier): Buffer {
  if (sid.kind === 'subjectKeyIdentifier') return tlv(contextPrimitive(0), sid.keyIdentifier);
  return sequence(sid.issuer.der, serialInteger(sid.serialNumber));
}

/**
 * Certs-only and crls-only messages: degenerate SignedData without content or signers (RFC 5272 §4.1, RFC 8951 §3.2.1,
 * RFC 8295 §4.2).
 */
const VERSION_1 = integer(1);
const EMPTY_SET = setOf();
const NO_CONTENT = sequence(oid(OID.data));

/** Keeps the given order: /cacerts returns the issuing CA first. Like OpenSSL, this does not sort the SET OF. */
export function certsOnly(certificates: readonly Buffer[]): Buffer {
  return degenerate(tlv(contextConstructed(0), ...certificates));
}

/** @param crls DER */
export function crlsOnly(crls: readonly Buffer[]): Buffer {
  return degenerate(tlv(contextConstructed(1), ...crls));
}

function degenerate(contents: Buffer): Buffer {
  const signedData = sequence(VERSION_1, EMPTY_SET, NO_CONTENT, contents, EMPTY_SET);
  return sequence(oid(OID.signedData), explicit(0, signedData));
}

/** The certificates (DER) of a certs-only message, in order. @throws DerError, also for other SignedData */
export function parseCertsOnly(der: Buffer): Buffer[] {
  const { certificates, signerInfos } = parseSignedData(der);
  if (signerInfos.length > 0) throw new DerError('SignedData.signerInfos: not empty');
  return [...certificates];
}
