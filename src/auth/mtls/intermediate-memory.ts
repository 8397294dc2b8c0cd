/**
 * Stores the CA certificates from clients' handshakes by the client certificate's fingerprint: a resumed TLS session
 * has only the latter. They are only candidates; each path is validated again.
 */
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { IntermediateStore, PresentedIntermediate } from '../../store/intermediate-store.ts';
import { readCertificates } from './presented-certificates.ts';

/** Clients cached in this process; the store has more, also from other nodes. */
const MAX_CLIENTS = 2000;
/** Milliseconds until a use is recorded in the store again. */
const REFRESH = 86_400_000;

interface Remembered {
  readonly fingerprints: string;
  /** When it was recorded. */
  readonly at: number;
}

export class IntermediateMemory {
  readonly #store: IntermediateStore;
  readonly #remembers: boolean;
  /** What this process recorded in the store, by the client's fingerprint; oldest first. */
  readonly #told = new Map<string, Remembered>();

  /** @param remembers whether to store what clients present for their next connection */
  constructor(store: IntermediateStore, remembers = true) {
    this.#store = store;
    this.#remembers = remembers;
  }

  /** What the client sent in an earlier handshake with any node. @throws EstuaryError 500 or 503 from the store */
  async recall(leaf: Certificate): Promise<readonly Certificate[]> {
    const intermediates = await this.#store.recallIntermediates(leaf.fingerprint);
    return readCertificates(intermediates.map(({ der }) => der));
  }

  /** Stores the client's certificates that a validated path needed. @throws EstuaryError 500 or 503 from the store */
  async remember(leaf: Certificate, intermediates: readonly Certificate[], now: number): Promise<void> {
    if (!this.#remembers || intermediates.length === 0) return;
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
