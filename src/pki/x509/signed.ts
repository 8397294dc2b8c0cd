/**
 * X.509's SIGNED, the common form of certificates, CRLs and certification requests (RFC 5280 §4.1.1, §5.1.1; RFC 2986
 * §4.2).
 */
import { hash } from 'node:crypto';
import { type DerElement, DerReader, readBitStringOctets, Tag } from '../der/der.ts';

interface Signed {
  /** What the signature covers. */
  readonly content: DerElement;
  readonly algorithm: Buffer;
  readonly signature: Buffer;
}

/** @param names of the whole and its parts in the standard, for messages. @throws DerError */
export function readSigned(
  der: Buffer,
  names: { readonly whole: string; readonly content: string; readonly signature: string },
): Signed {
  const reader = DerReader.of(der, names.whole);
  const content = reader.next(Tag.SEQUENCE, names.content);
  const algorithm = reader.sequence('signatureAlgorithm');
  const signature = readBitStringOctets(reader.next(Tag.BIT_STRING, names.signature), names.signature);
  reader.end();
  return { content, algorithm, signature };
}

/** Cache entries; each takes about 200 bytes. */
const CAPACITY = 4096;

/**
 * Caches valid signatures, keyed by the whole certificate and the issuer's key. A different signature or key is a
 * different entry. Invalid signatures are not stored, so a flood of them displaces nothing.
 */
export class VerifiedSignatures {
  readonly #capacity: number;
  /** Least recently used first. */
  readonly #known = new Set<string>();

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /**
   * @param fingerprint hex SHA-256 of the certificate's DER
   * @param spki DER SubjectPublicKeyInfo of the issuer's key
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
