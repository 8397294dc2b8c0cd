/** What certificates, CRLs and certification requests are alike: X.509's SIGNED (RFC 5280 §4.1.1 and §5.1.1, RFC 2986 §4.2). */
import { DerReader, Tag, readBitStringOctets, type DerElement } from '../der/der.ts';

export interface Signed {
  /** What the signature covers. */
  readonly content: DerElement;
  /** DER AlgorithmIdentifier. */
  readonly algorithm: Buffer;
  readonly signature: Buffer;
}

/** @param names as the standard calls the whole and its parts, for messages. @throws DerError */
export function readSigned(
  der: Buffer,
  names: { readonly whole: string; readonly content: string; readonly signature: string },
): Signed {
  const reader = DerReader.of(der, names.whole);
  const content = reader.next(Tag.SEQUENCE, names.content);
  const algorithm = reader.next(Tag.SEQUENCE, 'signatureAlgorithm').raw;
  const signature = readBitStringOctets(reader.next(Tag.BIT_STRING, names.signature), names.signature);
  reader.end();
  return { content, algorithm, signature };
}
