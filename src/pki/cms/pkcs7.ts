/**
 * Certs-only and crls-only messages: degenerate CMS SignedData without content or signers (RFC 5272 §4.1, RFC 8951
 * §3.2.1, RFC 8295 §4.2).
 */
import {
  DerError,
  DerReader,
  Tag,
  children,
  contextConstructed,
  explicit,
  integer,
  oid,
  readInteger,
  readOid,
  sequence,
  setOf,
  tlv,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';

const VERSION_1 = integer(1);
const EMPTY_SET = setOf();
const NO_CONTENT = sequence(oid(OID.data));

/**
 * The certificates stay in the order given: cacerts answers issuing CA first, and like OpenSSL we do not sort this
 * SET OF.
 * @param certificates DER
 */
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

/** The certificates (DER) of a certs-only message, in its order. Other SignedData is refused. @throws DerError */
export function parseCertsOnly(der: Buffer): Buffer[] {
  const info = DerReader.of(der, 'ContentInfo');
  if (readOid(info.next(Tag.OID, 'contentType')) !== OID.signedData)
    throw new DerError('ContentInfo.contentType: not SignedData');
  const content = info.enter(contextConstructed(0), 'content');
  info.end();
  const signedData = content.enter(Tag.SEQUENCE, 'SignedData');
  content.end();
  readInteger(signedData.next(Tag.INTEGER, 'version'));
  signedData.next(Tag.SET, 'digestAlgorithms');
  signedData.next(Tag.SEQUENCE, 'encapContentInfo');
  const certificates = signedData.optional(contextConstructed(0), 'certificates');
  signedData.optional(contextConstructed(1), 'crls');
  if (signedData.next(Tag.SET, 'signerInfos').value.length !== 0)
    throw new DerError('SignedData.signerInfos: not empty');
  signedData.end();
  return certificates === undefined
    ? []
    : children(certificates.value, 'certificates')
        .filter(({ tag }) => tag === Tag.SEQUENCE)
        .map(({ raw }) => raw);
}
