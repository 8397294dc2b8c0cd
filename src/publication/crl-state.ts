/** What there is to know of a CA's latest CRL, for whoever looks after it. */
import type { Ca } from '../ca/router.ts';
import { isListSignedBy, parseCertificateList, revokedCount } from '../pki/x509/crl.ts';
import type { CrlRow, CrlStore } from '../store/crl-store.ts';

/** Of its time after which a list is late: one is signed at half of it, and tried again at three quarters (crl-publisher.ts). */
const LATE = 0.8;

/** `overdue`: a newer one should be there by now. `expired`: nobody takes it any more. */
type CrlAge = 'current' | 'overdue' | 'expired';

interface CrlState {
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly bytes: number;
  readonly entries: number;
}

/** @param now milliseconds since the epoch; @param isPublished whether lists are signed that nobody asks for */
export function crlAge(
  { thisUpdate, nextUpdate }: Pick<CrlState, 'thisUpdate' | 'nextUpdate'>,
  now: number,
  isPublished: boolean,
): CrlAge {
  if (now >= nextUpdate) return 'expired';
  return isPublished && now >= thisUpdate + (nextUpdate - thisUpdate) * LATE ? 'overdue' : 'current';
}

/** Reads each list once: one of a hundred thousand entries has megabytes. */
export class CrlStates {
  readonly #store: Pick<CrlStore, 'crlNumber' | 'getCrl'>;
  /** By CA; of its certificate, as a reload may have given the label another key. */
  readonly #known = new Map<string, { readonly fingerprint: string; readonly state: CrlState }>();

  constructor(store: Pick<CrlStore, 'crlNumber' | 'getCrl'>) {
    this.#store = store;
  }

  /** Of the list that the CA's present key has signed last; undefined: of none. @throws EstuaryError 500, 503 from the store */
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
