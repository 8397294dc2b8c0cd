/** Records warnings that no change brings about, for notifications: what expires, is overdue or unavailable. In one node. */
import { everyCertificate } from '../administration/renewals.ts';
import { auditedCertificate } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { ListState } from '../auth/mtls/revocation-lists.ts';
import { healthOf } from '../ca/expiry.ts';
import type { CaRouter } from '../ca/router.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { crlAge, type CrlPublisher } from '../publication/crl-publisher.ts';
import type { Store } from '../store/store.ts';
import type { ListedCertificate } from '../store/certificate-store.ts';

export interface WarningsOptions {
  readonly store: Store;
  readonly cas: Pick<CaRouter, 'issuers' | 'all'>;
  readonly fleet: Pick<Fleet, 'catchUp'>;
  readonly clientCrls: () => readonly ListState[];
  readonly crls: Pick<CrlPublisher, 'latest'>;
  /** Days before the expiry, any order. */
  readonly days: readonly number[];
  readonly isPublished: boolean;
  readonly now: () => number;
}

const DAY = 86_400_000;
/** Milliseconds within which a certificate may be recorded after its issuance. */
const SLACK = 60_000;
/** Warnings that are remembered, so that none is recorded twice in a row. */
const MAX_KNOWN = 100_000;
/** The place in the store until which expiring certificates are recorded, ms. */
const [PLACE, UNTIL] = ['', 'expiring'];

export class Warnings {
  readonly #options: WarningsOptions;
  /** What was recorded: CRLs that are overdue, CAs that are unavailable, certificates. */
  readonly #known = new Set<string>();

  constructor(options: WarningsOptions) {
    this.#options = options;
  }

  /** @throws what the store throws */
  async look(): Promise<void> {
    const { store, now } = this.#options;
    const time = now();
    // Otherwise it is not known yet which certificates have been replaced.
    if (await this.#options.fleet.catchUp()) {
      const before = (await store.notificationPlaces(PLACE)).get(UNTIL) ?? 0;
      const expiring = [...(await this.#certificates(before, time)), ...this.#cas(before, time)];
      await store.advanceNotification(PLACE, UNTIL, time, expiring);
    }
    const states = [...(await this.#crls(time)), ...(await this.#unavailable(time)), ...this.#clientCrls()];
    if (states.length > 0) await store.audit(states);
  }

  /** The number of days before the expiry that has been reached since; undefined: none. */
  #reached(notAfter: number, before: number | undefined, time: number): number | undefined {
    const least = (at: number): number => Math.min(...this.#options.days.filter((days) => notAfter - at <= days * DAY));
    const days = least(time);
    const isKnown = before !== undefined && least(before) === days;
    return notAfter > time && Number.isFinite(days) && !isKnown ? days : undefined;
  }

  async #certificates(before: number, time: number): Promise<AuditEvent[]> {
    const { days } = this.#options;
    const selection = { status: 'valid', expires_before: time + Math.max(...days) * DAY } as const;
    const issued = new Set<string>();
    for await (const { ca, serial } of everyCertificate(
      this.#options.store,
      { ...selection, issued_after: before - SLACK },
      time,
    ))
      issued.add(`${ca} ${serial}`);
    const events: AuditEvent[] = [];
    for await (const row of everyCertificate(this.#options.store, selection, time)) {
      const reached = this.#reached(row.not_after, issued.has(`${row.ca} ${row.serial}`) ? undefined : before, time);
      if (reached === undefined || (await this.#isReplaced(row, time))) continue;
      if (!this.#isNew(`certificate ${row.ca} ${row.serial} ${reached}`, true)) continue;
      const facts = {
        ...auditedCertificate(row),
        certificate_subject: row.subject,
        certificate_sans: row.sans,
        certificate_not_after: new Date(row.not_after).toISOString(),
        ...(row.device === null ? {} : { device: row.device }),
        requester: row.requester,
        days: reached,
      };
      const detail = `${row.subject}, serial number ${row.serial}, expires ${facts.certificate_not_after}`;
      events.push({ ...facts, type: 'certificate.expiring', outcome: 'failure', detail });
    }
    return events;
  }

  /** Whether the certificate is replaced by one that is valid, or its device has a newer one. */
  async #isReplaced({ ca, serial, device_key }: ListedCertificate, time: number): Promise<boolean> {
    const { store } = this.#options;
    const successions = await store.listSuccessions([serial], time);
    if (successions.some((succession) => succession.ca === ca && succession.replaced === 1)) return true;
    if (device_key === null) return false;
    const { items } = await store.listCertificates({ device_key, ca, status: 'valid', limit: 1, order: 'desc' }, time);
    return items[0]?.serial !== serial;
  }

  #cas(before: number, time: number): AuditEvent[] {
    return this.#options.cas.issuers.flatMap((ca) => {
      // A remote CA may not be known yet.
      if (ca.driver.chain().length === 0) return [];
      const { label, certificate } = ca;
      const { notAfter, serialNumber } = certificate;
      const days = this.#reached(notAfter.getTime(), before, time);
      if (days === undefined) return [];
      const certificate_not_after = notAfter.toISOString();
      const detail = `the certificate of CA ${label} expires ${certificate_not_after}`;
      const facts = { ca: label, serial: serialNumber, certificate_not_after, days };
      return [{ ...facts, type: 'ca.expiring', outcome: 'failure', detail } satisfies AuditEvent];
    });
  }

  async #crls(time: number): Promise<AuditEvent[]> {
    const events: AuditEvent[] = [];
    for (const ca of this.#options.cas.issuers) {
      const state = ca.driver.statusSigner === undefined ? undefined : await this.#options.crls.latest(ca);
      const isLate = state !== undefined && crlAge(state, time, this.#options.isPublished) !== 'current';
      if (!this.#isNew(`crl ${ca.label}`, isLate) || state === undefined) continue;
      const detail = `CRL ${state.number} of ${ca.label} should have been replaced; it expires ${new Date(state.next_update).toISOString()}`;
      events.push({ ca: ca.label, type: 'crl.overdue', outcome: 'failure', crl_number: state.number, detail });
    }
    return events;
  }

  async #unavailable(time: number): Promise<AuditEvent[]> {
    const events: AuditEvent[] = [];
    for (const ca of this.#options.cas.all) {
      if (ca.issuer !== ca && ca.fault === undefined) continue;
      const report = await healthOf(ca, time);
      if (!this.#isNew(`unavailable ${ca.label}`, report.health === 'down')) continue;
      const type = ca.ownIsRecorded ? 'upstream.unavailable' : 'ca.unavailable';
      events.push({ ca: ca.label, type, outcome: 'failure', detail: `${ca.label}: ${report.detail ?? 'down'}` });
    }
    return events;
  }

  #clientCrls(): AuditEvent[] {
    const states = this.#options.clientCrls();
    return [...Map.groupBy(states, ({ issuer }) => issuer)].flatMap(([issuer, lists]) => {
      const detail = lists.find(({ problem }) => problem !== undefined)?.problem;
      const isNew = this.#isNew(`client CRL ${issuer}`, detail !== undefined);
      return isNew && detail !== undefined ? [{ type: 'client_crl.expired', outcome: 'failure', detail } as const] : [];
    });
  }

  #isNew(what: string, isSo: boolean): boolean {
    if (!isSo) this.#known.delete(what);
    if (this.#known.size > MAX_KNOWN) this.#known.clear();
    return isSo && this.#known.size !== this.#known.add(what).size;
  }
}
