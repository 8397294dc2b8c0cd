/** Maintains a CRL for each CA: signed on time, with increasing numbers, shared by all nodes. */
import { crlIssued } from '../audit/applied-events.ts';
import type { Ca } from '../ca/router.ts';
import type { StatusSigner } from '../ca/driver.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import { buildTbsCertList, isListSignedBy, parseCertificateList, revokedCount } from '../pki/x509/crl.ts';
import { subjectKeyIdentifier } from '../pki/x509/public-key.ts';
import { backdated } from './clocks.ts';
import type { CrlHead, CrlRow, CrlStore } from '../store/crl-store.ts';

export interface CrlPublisherOptions {
  readonly store: CrlStore;
  readonly cas: () => readonly Ca[];
  /** Validity of a CRL in seconds; a new one is signed after half of it. */
  readonly interval: number;
  /** Seconds from a revocation to a new list. 0, the default: revocations wait for the next one. */
  readonly afterRevocation?: number;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Whether this node signs lists without a request; default: yes. */
  readonly isOnDuty?: () => boolean;
  readonly now: () => number;
}

/** Milliseconds between checks for revocations. */
const LOOK = 1000;
/** Milliseconds until a CRL that could not be signed is tried again. */
const RETRY = 10_000;

/** Entries per read, small enough not to delay other reads. */
const PAGE = 500;

/** Fraction of its validity after which a list is late: renewal is due at half, and retried at three quarters. */
const LATE = 0.8;

/**
 * `overdue`: a newer list should exist. `expired`: relying parties reject it.
 * @param isPublished whether lists are signed without a request
 */
export function crlAge(
  { this_update, next_update }: Pick<CrlRow, 'this_update' | 'next_update'>,
  now: number,
  isPublished: boolean,
): 'current' | 'overdue' | 'expired' {
  if (now >= next_update) return 'expired';
  return isPublished && now >= this_update + (next_update - this_update) * LATE ? 'overdue' : 'current';
}

export class CrlPublisher {
  readonly #options: CrlPublisherOptions;
  /**
   * The latest list of each CA, with the signing key; the store's number shows whether another node has a later one.
   */
  readonly #latest = new Map<string, { readonly row: CrlRow; readonly spki: Buffer }>();
  /** What each list says, parsed once: one with a hundred thousand entries has megabytes. */
  readonly #contents = new WeakMap<CrlRow, { readonly entries: number; readonly thisUpdate: number }>();
  readonly #underWay = new Map<string, Promise<CrlRow>>();
  /** When the list of a CA could not be signed, ms. */
  readonly #failedAt = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CrlPublisherOptions) {
    this.#options = options;
  }

  /** Signs due lists now and later, without requests. */
  start(): void {
    const { interval, afterRevocation = 0 } = this.#options;
    // Twice within the half interval after which a list is due.
    this.#timer = setInterval(() => this.#refresh(), afterRevocation > 0 ? LOOK : (interval * 1000) / 4);
    this.#timer.unref();
    this.#refresh();
  }

  /** After a change of the CAs, lists of new CAs are due at once. */
  casChanged(): void {
    if (this.#timer !== undefined) this.#refresh();
  }

  #refresh(): void {
    if (this.#options.isOnDuty?.() === false) return;
    const { cas, log } = this.#options;
    for (const ca of cas())
      if (ca.driver.statusSigner !== undefined && !this.#failedLately(ca.label))
        this.current(ca, ca.driver.statusSigner).catch((error: unknown) =>
          log.error({ ca: ca.label, detail: describe(error) }, 'cannot sign a CRL'),
        );
  }

  /** Waits for signatures in progress. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay.values());
  }

  /** Stops the timer and waits for signatures in progress. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.idle();
  }

  /**
   * The CA's CRL. A due list that cannot be renewed is still served until its nextUpdate, also without the store.
   * @throws EstuaryError if there is no valid list and none can be signed
   */
  async current(ca: Ca, signer: StatusSigner): Promise<CrlRow> {
    const { store, now, log } = this.#options;
    let known = this.#known(ca);
    try {
      const head = await store.crlHead(ca.label);
      known = await this.#load(ca, head);
      if (known !== undefined && !this.#isDue(known, head)) return known;
      return await this.#renew(ca, signer);
    } catch (error) {
      const isLogged = this.#failedLately(ca.label);
      this.#failedAt.set(ca.label, now());
      if (known === undefined || now() >= known.next_update) throw error;
      if (!isLogged) log.error({ ca: ca.label, detail: describe(error) }, 'cannot bring the CRL up to date');
      return known;
    }
  }

  /** The latest list signed with the CA's current key, if any. @throws EstuaryError 500, 503 from the store */
  async latest(ca: Ca): Promise<(CrlRow & { readonly entries: number; readonly thisUpdate: number }) | undefined> {
    const row = await this.#load(ca, await this.#options.store.crlHead(ca.label));
    if (row === undefined) return undefined;
    let contents = this.#contents.get(row);
    if (contents === undefined) {
      const list = parseCertificateList(row.der);
      contents = { entries: revokedCount(list), thisUpdate: list.thisUpdate.getTime() };
      this.#contents.set(row, contents);
    }
    return { ...row, ...contents };
  }

  /** Signs a CRL that has every revocation until now. @throws EstuaryError when it cannot be signed */
  async signNow(ca: Ca, signer: StatusSigner): Promise<CrlRow> {
    // It may have read its entries before the last revocation.
    await this.#underWay.get(keyOf(ca))?.catch(() => undefined);
    return this.#renew(ca, signer);
  }

  /** Milliseconds for which caches may keep a list. */
  maxAge(row: CrlRow): number {
    const { afterRevocation = 0, now } = this.#options;
    const left = dueAt(row) - now();
    return afterRevocation > 0 ? Math.min(left, afterRevocation * 1000) : left;
  }

  /** Includes a clock set back, or a shorter interval in the configuration. */
  #isDue(row: CrlRow, { changed_at: changed }: CrlHead): boolean {
    const { now: clock, interval, afterRevocation = 0 } = this.#options;
    const now = clock();
    const age = now - row.this_update;
    if (now >= dueAt(row) || age < -1000 || age >= interval * 500) return true;
    return afterRevocation > 0 && changed !== null && now - changed >= afterRevocation * 1000;
  }

  #failedLately(label: string): boolean {
    return this.#options.now() - (this.#failedAt.get(label) ?? -Infinity) < RETRY;
  }

  async #load(ca: Ca, { number }: CrlHead): Promise<CrlRow | undefined> {
    const { store } = this.#options;
    const known = this.#known(ca);
    if (number === undefined || known?.number === number) return known;
    const row = await store.getCrl(ca.label);
    // After a key change under the same label, the old list no longer belongs to the CA.
    if (row === undefined || !(await isListSignedBy(parseCertificateList(row.der), ca.certificate.publicKey)))
      return undefined;
    this.#keep(ca, row);
    return row;
  }

  /** For the CA's current key, which a reload may have changed. */
  #known(ca: Ca): CrlRow | undefined {
    const known = this.#latest.get(ca.label);
    return known?.spki.equals(ca.certificate.spki) === true ? known.row : undefined;
  }

  #keep(ca: Ca, row: CrlRow): void {
    this.#latest.set(ca.label, { row, spki: ca.certificate.spki });
  }

  /** One at a time for each CA, however many ask. */
  #renew(ca: Ca, signer: StatusSigner): Promise<CrlRow> {
    const key = keyOf(ca);
    const already = this.#underWay.get(key);
    if (already !== undefined) return already;
    const renewal = this.#sign(ca, signer).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, renewal);
    return renewal;
  }

  async #sign(ca: Ca, signer: StatusSigner): Promise<CrlRow> {
    const { store, interval, now, log } = this.#options;
    const head = await store.crlHead(ca.label);
    const before = await this.#load(ca, head);
    const number = await store.takeCrlNumber(ca.label);
    const this_update = Math.floor(now() / 1000) * 1000;
    const next_update = this_update + interval * 1000;
    const { certificate } = ca;
    const earlier = before === undefined ? 0 : parseCertificateList(before.der).thisUpdate.getTime();
    // RFC 5280 §3.3: an entry stays until one CRL issued after the certificate's expiry has contained it.
    const { entries, newest } = await this.#entries(ca.label, now(), earlier);
    const tbs = buildTbsCertList({
      signatureAlgorithm: signer.signatureAlgorithm,
      issuer: certificate.subject.der,
      thisUpdate: new Date(backdated(this_update, newest, earlier)),
      nextUpdate: new Date(next_update),
      authorityKeyIdentifier: certificate.subjectKeyIdentifier ?? subjectKeyIdentifier(certificate.spki),
      number,
      entries,
    });
    const row: CrlRow = { ca: ca.label, number, this_update, next_update, der: await signer.sign(tbs) };
    const saved = await store.saveCrl(row, head.changes, [crlIssued(ca.label, number, row.der.length)]);
    // Another node was faster with a later list, which may have been given out already: numbers never fall.
    if (!saved) return (await this.#load(ca, await store.crlHead(ca.label))) ?? row;
    this.#failedAt.delete(ca.label);
    if ((this.#known(ca)?.number ?? 0) < number) this.#keep(ca, row);
    log.info({ ca: ca.label, number, bytes: row.der.length }, 'CRL signed');
    return row;
  }

  async #entries(ca: string, revoked_until: number, valid_at: number): Promise<{ entries: Buffer[]; newest: number }> {
    const entries: Buffer[] = [];
    let newest = 0;
    for (let after = 0; ;) {
      const filter = { ca, revoked_until, valid_at, after, limit: PAGE };
      const page = await this.#options.store.revokedEntries(filter);
      entries.push(page.der);
      newest = Math.max(newest, page.newest);
      if (page.count < PAGE) return { entries, newest };
      after = page.last;
    }
  }
}

const keyOf = ({ label, certificate }: Ca): string => `${label} ${certificate.fingerprint}`;

/** When the next list is due, ms. */
const dueAt = ({ this_update, next_update }: CrlRow): number => this_update + (next_update - this_update) / 2;
