/**
 * The CA certificates that clients sent in their handshakes, by the fingerprint of the client's own: a resumed TLS
 * session has the latter alone. They are candidates for a path and nothing more; each path is validated anew.
 */
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { IntermediateStore, PresentedIntermediate } from '../../store/intermediate-store.ts';
import { readCertificates } from './presented-certificates.ts';

/** Clients remembered in this process; the store has more, also from other nodes. */
const MAX_CLIENTS = 2000;
/** Milliseconds after which the store is told again that something is in use. */
const REFRESH = 86_400_000;

interface Remembered {
  readonly fingerprints: string;
  /** When the store was told. */
  readonly at: number;
}

export class IntermediateMemory {
  readonly #store: IntermediateStore;
  /** What this process told the store of, by the client's fingerprint; the oldest first. */
  readonly #told = new Map<string, Remembered>();

  constructor(store: IntermediateStore) {
    this.#store = store;
  }

  /**
   * What the client sent at an earlier handshake, with this or another node.
   *
   * @throws EstuaryError 500 or 503 from the store
   */
  async recall(leaf: Certificate): Promise<readonly Certificate[]> {
    const intermediates = await this.#store.recallIntermediates(leaf.fingerprint);
    return readCertificates(intermediates.map(({ der }) => der));
  }

  /**
   * Keeps what the client sent and a validated path needed.
   *
   * @param now milliseconds
   * @throws EstuaryError 500 or 503 from the store
   */
  async remember(leaf: Certificate, intermediates: readonly Certificate[], now: number): Promise<void> {
    if (intermediates.length === 0) return;
    const fingerprints = intermediates.map(({ fingerprint }) => fingerprint).join(' ');
    const told = this.#told.get(leaf.fingerprint);
    if (told?.fingerprints === fingerprints && now - told.at < REFRESH) return;
    const rows: PresentedIntermediate[] = intermediates.map(({ fingerprint, der }) => ({ fingerprint, der }));
    await this.#store.rememberIntermediates({ leaf: leaf.fingerprint, intermediates: rows }, now);
    this.#told.delete(leaf.fingerprint);
    this.#told.set(leaf.fingerprint, { fingerprints, at: now });
    const [oldest] = this.#told.keys();
    if (this.#told.size > MAX_CLIENTS && oldest !== undefined) this.#told.delete(oldest);
  }
}
