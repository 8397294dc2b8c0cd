/** Signatures on certificates that were verified before. */
import { hash } from 'node:crypto';

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
