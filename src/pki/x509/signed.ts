/** What certificates, CRLs and certification requests are alike: X.509's SIGNED (RFC 5280 §4.1.1 and §5.1.1, RFC 2986 §4.2). */
import { hash } from 'node:crypto';
import { type DerElement, DerReader, readBitStringOctets, Tag } from '../der/der.ts';

interface Signed {
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

/** Signatures remembered; each takes some 200 bytes. */
const CAPACITY = 4096;

/**
 * Remembers by the whole certificate, its signature included, and the issuer's key: another signature on the same names, or
 * another key under the same name, is not the one that was verified. Only what was good is remembered, so that a flood of bad ones
 * displaces nothing.
 */
export class VerifiedSignatures {
  readonly #capacity: number;
  /** The least recently used first. */
  readonly #known = new Set<string>();

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /**
   * @param fingerprint hex SHA-256 of the certificate's DER
   * @param spki DER SubjectPublicKeyInfo of the key that signed it
   */
  has(fingerprint: string, spki: Buffer): boolean {
    const key = keyOf(fingerprint, spki);
    if (!this.#known.delete(key)) return false;
    this.#known.add(key);
    return true;
  }

  add(fingerprint: string, spki: Buffer): void {
    this.#known.add(keyOf(fingerprint, spki));
    if (this.#known.size <= this.#capacity) return;
    const [oldest] = this.#known;
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

const keyOf = (fingerprint: string, spki: Buffer): string => `${fingerprint} ${hash('sha256', spki, 'hex')}`;
