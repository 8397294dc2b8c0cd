/** Keeps a CRL of each CA at hand: signed on time, numbered without a gap backwards, shared by all nodes. */
import { crlIssued } from '../audit/applied-events.ts';
import type { Ca } from '../ca/router.ts';
import type { StatusSigner } from '../ca/driver.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import { buildTbsCertList, isListSignedBy, parseCertificateList } from '../pki/x509/crl.ts';
import { subjectKeyIdentifier } from '../pki/x509/public-key.ts';
import type { CrlRow, CrlStore } from '../store/crl-store.ts';

export interface CrlPublisherOptions {
  readonly store: CrlStore;
  /** Those in force. */
  readonly cas: () => readonly Ca[];
  /** How long a CRL is valid, seconds; a new one is signed when half of it has passed. */
  readonly interval: number;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Whether lists are signed here that nobody asks for: of several nodes, one does. Absent: yes. */
  readonly isOnDuty?: () => boolean;
  readonly now: () => number;
}

/** Entries of one read: few enough that other reads do not wait long. */
const PAGE = 500;

export class CrlPublisher {
  readonly #options: CrlPublisherOptions;
  /** The latest list of each CA, with the key that signed it; the store's number says whether another node has a later one. */
  readonly #latest = new Map<string, { readonly row: CrlRow; readonly spki: Buffer }>();
  readonly #underWay = new Map<string, Promise<CrlRow>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CrlPublisherOptions) {
    this.#options = options;
  }

  /** Signs what is due now and from then on, whether or not somebody asks. */
  start(): void {
    // Looked at twice in the half of the interval after which a list is due.
    this.#timer = setInterval(() => this.#refresh(), (this.#options.interval * 1000) / 4);
    this.#timer.unref();
    this.#refresh();
  }

  /** After a change of the CAs: the new ones' lists are due at once, where lists are signed whether or not somebody asks. */
  casChanged(): void {
    if (this.#timer !== undefined) this.#refresh();
  }

  #refresh(): void {
    if (this.#options.isOnDuty?.() === false) return;
    for (const ca of this.#options.cas())
      if (ca.driver.statusSigner !== undefined)
        this.current(ca, ca.driver.statusSigner).catch((error: unknown) => {
          this.#options.log.error({ ca: ca.label, detail: describe(error) }, 'no CRL could be signed');
        });
  }

  /** Waits for what is being signed now. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay.values());
  }

  /** Ends the timer and waits for what is being signed. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.idle();
  }

  /**
   * The CA's CRL. One that is due but cannot be renewed is still given out until its nextUpdate.
   * @throws EstuaryError when there is none that is valid and none can be signed
   */
  async current(ca: Ca, signer: StatusSigner): Promise<CrlRow> {
    const known = await this.#load(ca);
    if (known !== undefined && !this.#isDue(known)) return known;
    try {
      return await this.#renew(ca, signer, known);
    } catch (error) {
      if (known === undefined || this.#options.now() >= known.next_update) throw error;
      this.#options.log.error({ ca: ca.label, detail: describe(error) }, 'a CRL is due and could not be signed');
      return known;
    }
  }

  /** When the next list is due, ms. */
  dueAt({ this_update, next_update }: CrlRow): number {
    return this_update + (next_update - this_update) / 2;
  }

  /** Also when the clock was set back, or the interval in the configuration made shorter. */
  #isDue(row: CrlRow): boolean {
    const now = this.#options.now();
    const age = now - row.this_update;
    return now >= this.dueAt(row) || age < -1000 || age >= this.#options.interval * 500;
  }

  async #load(ca: Ca): Promise<CrlRow | undefined> {
    const { store } = this.#options;
    const number = await store.crlNumber(ca.label);
    const known = this.#known(ca);
    if (number === undefined || known?.number === number) return known;
    const row = await store.getCrl(ca.label);
    // After a change of the CA's key under the same label the old list is no longer the CA's.
    if (row === undefined || !(await isListSignedBy(parseCertificateList(row.der), ca.certificate.publicKey)))
      return undefined;
    this.#keep(ca, row);
    return row;
  }

  /** Of the CA as it is now: a reload may have given the label another key. */
  #known(ca: Ca): CrlRow | undefined {
    const known = this.#latest.get(ca.label);
    return known?.spki.equals(ca.certificate.spki) === true ? known.row : undefined;
  }

  #keep(ca: Ca, row: CrlRow): void {
    this.#latest.set(ca.label, { row, spki: ca.certificate.spki });
  }

  /** One at a time for each CA, however many ask. */
  #renew(ca: Ca, signer: StatusSigner, before: CrlRow | undefined): Promise<CrlRow> {
    const key = `${ca.label} ${ca.certificate.fingerprint}`;
    const already = this.#underWay.get(key);
    if (already !== undefined) return already;
    const renewal = this.#sign(ca, signer, before).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, renewal);
    return renewal;
  }

  async #sign(ca: Ca, signer: StatusSigner, before: CrlRow | undefined): Promise<CrlRow> {
    const { store, interval, now, log } = this.#options;
    const number = await store.takeCrlNumber(ca.label);
    const this_update = Math.floor(now() / 1000) * 1000;
    const next_update = this_update + interval * 1000;
    const { certificate } = ca;
    const tbs = buildTbsCertList({
      signatureAlgorithm: signer.signatureAlgorithm,
      issuer: certificate.subject.der,
      thisUpdate: new Date(this_update),
      nextUpdate: new Date(next_update),
      authorityKeyIdentifier: certificate.subjectKeyIdentifier ?? subjectKeyIdentifier(certificate.spki),
      number,
      // RFC 5280 §3.3: an entry stays until one list that was issued after the certificate's expiry has had it.
      entries: await this.#entries(ca.label, now(), before?.this_update ?? 0),
    });
    const row: CrlRow = { ca: ca.label, number, this_update, next_update, der: await signer.sign(tbs) };
    const saved = await store.saveCrl(row, [crlIssued(ca.label, number, row.der.length)]);
    // Another node was faster with a later list, which may have been given out already: numbers never fall.
    if (!saved) return (await this.#load(ca)) ?? row;
    if ((this.#known(ca)?.number ?? 0) < number) this.#keep(ca, row);
    log.info({ ca: ca.label, number, bytes: row.der.length }, 'CRL signed');
    return row;
  }

  async #entries(ca: string, revoked_until: number, valid_at: number): Promise<Buffer[]> {
    const pages: Buffer[] = [];
    for (let after = 0; ;) {
      const filter = { ca, revoked_until, valid_at, after, limit: PAGE };
      const { count, last, der } = await this.#options.store.revokedEntries(filter);
      pages.push(der);
      if (count < PAGE) return pages;
      after = last;
    }
  }
}
