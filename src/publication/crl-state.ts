/** The state of a CA's latest CRL, for monitoring. */
import type { Ca } from '../ca/router.ts';
import { isListSignedBy, parseCertificateList, revokedCount } from '../pki/x509/crl.ts';
import type { CrlRow, CrlStore } from '../store/crl-store.ts';

/**
 * Fraction of its validity after which a list is late: renewal is due at half, and retried at three quarters
 * (crl-publisher.ts).
 */
const LATE = 0.8;

/** `overdue`: a newer one should exist. `expired`: relying parties reject it. */
type CrlAge = 'current' | 'overdue' | 'expired';

interface CrlState {
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly bytes: number;
  readonly entries: number;
}

/** @param isPublished whether lists are signed without a request */
export function crlAge(
  { thisUpdate, nextUpdate }: Pick<CrlState, 'thisUpdate' | 'nextUpdate'>,
  now: number,
  isPublished: boolean,
): CrlAge {
  if (now >= nextUpdate) return 'expired';
  return isPublished && now >= thisUpdate + (nextUpdate - thisUpdate) * LATE ? 'overdue' : 'current';
}

/** Parses each list once: one with a hundred thousand entries has megabytes. */
export class CrlStates {
  readonly #store: Pick<CrlStore, 'crlNumber' | 'getCrl'>;
  /** By CA and certificate, since a reload may have changed the label's key. */
  readonly #known = new Map<string, { readonly fingerprint: string; readonly state: CrlState }>();

  constructor(store: Pick<CrlStore, 'crlNumber' | 'getCrl'>) {
    this.#store = store;
  }

  /** The latest list signed with the CA's current key, if any. @throws EstuaryError 500, 503 from the store */
  async of({ label, certificate }: Pick<Ca, 'label' | 'certificate'>): Promise<CrlState | undefined> {
    const number = await this.#store.crlNumber(label);
    if (number === undefined) return undefined;
    const known = this.#known.get(label);
    if (known?.state.number === number && known.fingerprint === certificate.fingerprint) return known.state;
    const row = await this.#store.getCrl(label);
    const state = row === undefined ? undefined : await read(row, certificate);
    if (state !== undefined) this.#known.set(label, { fingerprint: certificate.fingerprint, state });
    return state;
  }
}

async function read(row: CrlRow, { publicKey }: Ca['certificate']): Promise<CrlState | undefined> {
  const list = parseCertificateList(row.der);
  if (!(await isListSignedBy(list, publicKey))) return undefined;
  const { number, this_update: thisUpdate, next_update: nextUpdate, der } = row;
  return { number, thisUpdate, nextUpdate, bytes: der.length, entries: revokedCount(list) };
}
