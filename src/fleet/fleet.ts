/**
 * Keeps the states of all holders current (docs/guides/fleet.md): reads what audit records say has changed, and derives the holders that it
 * concerns. What existed before is found by a walk over the certificates, once, and again when the configuration or a campaign changes the
 * windows.
 */
import { hash } from 'node:crypto';
import { isAuditRecord } from '../audit/record.ts';
import { renewalWindow } from '../ca/renewal-window.ts';
import type { CaRouter } from '../ca/router.ts';
import { RENEWAL_DEFAULTS } from '../config/schema/label.ts';
import { type Certificate, fingerprintsOf } from '../pki/x509/certificate.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { Events } from '../store/calls/calls.ts';
import type { HolderListStore } from '../store/holder-list.ts';
import { HOLDER_STATES, type HolderState } from '../store/holder-state.ts';
import type { FleetRules } from '../store/holder-derivation.ts';
import type { FleetProgress, HolderStore } from '../store/holder-store.ts';
import type { NotificationStore } from '../store/notification-store.ts';
import type { RenewalRow, RenewalStore } from '../store/renewal-store.ts';
import type { RejectedCertificate } from './use-recorder.ts';
import { ChangeReader, FLEET_TYPES } from './changes.ts';
import { countEvent, holderEvent } from './events.ts';

export type FleetStore = HolderStore &
  HolderListStore &
  Pick<AuditStore, 'listAudit'> &
  Pick<RenewalStore, 'listRenewals'> &
  Pick<NotificationStore, 'auditChains'>;

export interface FleetOptions {
  readonly store: FleetStore;
  readonly cas: Pick<CaRouter, 'all'>;
  /** Certificates of configured registration authorities. */
  readonly authorities: () => readonly Certificate[];
  /** `fleet.forget_expired`, in days. */
  readonly forgetExpired: () => number;
  /** Writes what this node has seen. */
  readonly flush: () => Promise<void>;
  readonly isOnDuty: () => boolean;
  /** Whether there are receivers of notifications. */
  readonly reports: boolean;
  readonly now: () => number;
}

export interface FleetSummary {
  readonly as_of: number;
  readonly labels: Readonly<Record<string, Readonly<Record<HolderState, number>>>>;
  readonly expiring: Readonly<Record<'1' | '7' | '30', number>>;
}

const [MINUTE, DAY] = [60_000, 86_400_000];
/** Holders of a label that are reported one by one, and milliseconds without another one before they are. */
const [MAX_SINGLE, QUIET] = [100, 5000];
/** Audit records per read. */
const RECORDS = 500;
/** Milliseconds that a caller waits for the derivation, which goes on in the background. */
const TIMEOUT = 250;
/** Records without any change, after which the place is stored. */
const STORE_AFTER = 5000;
/** A summary is as old as this many times the time that it took, and at most half a minute. */
const [CACHED_FOR, MAX_AGE] = [20, 30_000];
/** Fewer holders are counted anew for each caller. */
const FEW = 10_000;

interface Counts {
  readonly as_of: number;
  readonly until: number;
  readonly counts: Awaited<ReturnType<FleetStore['countHolders']>>;
  readonly expiring: Awaited<ReturnType<FleetStore['countExpiringHolders']>>;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #reader: ChangeReader;
  /** Places in chains of audit records, which are stored later. */
  readonly #read = new Map<string, number>();
  #walked: string | undefined;
  #work: Promise<boolean> = Promise.resolve(true);
  #counts: Counts | undefined;
  /** As the last derivation found them. */
  campaigns: readonly RenewalRow[] = [];

  constructor(options: FleetOptions) {
    this.#options = options;
    const { store } = options;
    this.#reader = new ChangeReader(async (request_id) => (await store.listAudit({ request_id, limit: 50 })).items);
  }

  /**
   * Derives what has changed. `false`: there is more, and the time is up.
   * @param timeout milliseconds
   * @throws what the store throws
   */
  catchUp(timeout = TIMEOUT): Promise<boolean> {
    const deadline = performance.now() + timeout;
    return (this.#work = this.#work.catch(() => false).then(() => this.#catchUp(deadline)));
  }

  /** Records rejections of certificates that authenticated nobody. @throws what the store throws */
  async reject(rejections: readonly RejectedCertificate[]): Promise<void> {
    const { store, now } = this.#options;
    await this.catchUp();
    await store.applyFleetChanges({ rejections }, await this.#rules(), now());
  }

  /** @throws what the store throws */
  async list(filter: Parameters<FleetStore['listHolders']>[0]) {
    await this.refresh();
    return this.#options.store.listHolders(filter);
  }

  /** @param labels only these; default: all. @throws what the store throws */
  async summary(labels?: readonly string[]): Promise<FleetSummary> {
    await this.refresh();
    const { as_of, counts, expiring } = await this.#count();
    const isShown = (label: string): boolean => labels?.includes(label) !== false;
    const shown = new Set([...this.#options.cas.all.map(({ label }) => label), ...counts.map(({ label }) => label)]);
    shown.delete('');
    const none = Object.fromEntries(HOLDER_STATES.map((state) => [state, 0])) as Record<HolderState, number>;
    const byLabel = new Map([...shown].filter(isShown).map((label) => [label, { ...none }]));
    for (const { label, state, n } of counts) {
      const states = byLabel.get(label);
      if (states !== undefined) states[state] = n;
    }
    const sum = (name: 'day' | 'week' | 'month'): number =>
      expiring.reduce((total, row) => total + (isShown(row.label) ? row[name] : 0), 0);
    return {
      as_of,
      labels: Object.fromEntries(byLabel),
      expiring: { '1': sum('day'), '7': sum('week'), '30': sum('month') },
    };
  }

  /** Writes what this node has seen, and derives what has changed, as far as a caller waits. @throws what the store throws */
  async refresh(turns = 1): Promise<void> {
    await this.#options.flush();
    for (let turn = 0; turn < turns && !(await this.catchUp()); turn++);
  }

  /** Reports states that holders have entered, a group of a label and a state at a time. @throws what the store throws */
  async report(): Promise<void> {
    const { store, now, reports } = this.#options;
    if (!reports) return;
    const time = now();
    for (const group of await store.countEnteredHolders(time - MINUTE)) {
      const { label, state, n, first, last, reported } = group;
      const total = n + reported;
      // More may follow within the minute.
      if (total <= MAX_SINGLE && time - last < QUIET && time - first < MINUTE) continue;
      let events: Events = total > MAX_SINGLE ? [countEvent(label, state, n)] : [];
      for (let rest = n; rest > 0;) {
        const holders = await store.listEnteredHolders(label, state);
        if (holders.length === 0) break;
        if (total <= MAX_SINGLE) events = holders.map(holderEvent);
        await store.reportHolders(holders, time, events);
        events = [];
        rest -= holders.length;
      }
    }
  }

  async #count(): Promise<Counts> {
    const { store, now } = this.#options;
    const began = performance.now();
    if (this.#counts !== undefined && began < this.#counts.until) return this.#counts;
    const as_of = now();
    const [counts, expiring] = await Promise.all([store.countHolders(), store.countExpiringHolders(as_of)]);
    const end = performance.now();
    const holders = counts.reduce((total, { n }) => total + n, 0);
    const until = holders < FEW ? 0 : end + Math.min(MAX_AGE, CACHED_FOR * (end - began));
    return (this.#counts = { as_of, until, counts, expiring });
  }

  async #catchUp(deadline: number): Promise<boolean> {
    const { store, now, isOnDuty } = this.#options;
    const campaigns = (this.campaigns = await store.listRenewals());
    const fingerprint = this.#fingerprint(campaigns);
    let progress = await store.fleetProgress();
    if (!progress.has('certificate')) {
      await this.#begin(fingerprint);
      progress = await store.fleetProgress();
    } else if (isOnDuty() && progress.get('certificate')?.detail !== fingerprint) await this.#walkAgain(fingerprint);
    const rules = this.#rulesWith(campaigns, progress.has('walked'));
    const isOver = (): boolean => performance.now() > deadline;
    for (const [node, head] of await store.auditChains())
      if (!(await this.#readChain(node, head, progress, rules, isOver))) return false;
    while (await store.isHolderDue(now())) {
      if (isOver()) return false;
      await store.deriveDueHolders(rules, now());
    }
    if (this.#walked === fingerprint) return true;
    for (const table of ['certificate', 'device'] as const)
      while (await store.walkFleet(table, rules, now())) if (isOver()) return false;
    if (!progress.has('walked')) await store.setFleetProgress('walked', 1, null);
    this.#walked = fingerprint;
    return true;
  }

  /** What is in the chains now is found by the walk. */
  async #begin(fingerprint: string): Promise<void> {
    const { store } = this.#options;
    for (const [node, seq] of await store.auditChains()) await store.setFleetProgress(chainName(node), seq, null);
    await this.#walkAgain(fingerprint);
  }

  async #walkAgain(fingerprint: string): Promise<void> {
    const { store } = this.#options;
    await store.setFleetProgress('device', 0, fingerprint);
    await store.setFleetProgress('certificate', 0, fingerprint);
  }

  async #readChain(
    node: string,
    head: number,
    progress: FleetProgress,
    rules: FleetRules,
    isOver: () => boolean,
  ): Promise<boolean> {
    const { store, now } = this.#options;
    const name = chainName(node);
    let from = progress.get(name)?.upto ?? 0;
    let after = Math.max(from, this.#read.get(name) ?? 0);
    while (after < head) {
      if (isOver()) return false;
      const { lines, last } = await store.auditEvents(node, after, FLEET_TYPES, RECORDS);
      if (last === after) break;
      const records = lines.map((line): unknown => JSON.parse(line)).filter(isAuditRecord);
      const changes = await this.#reader.read(records);
      if (Object.keys(changes).length > 0 || last - from >= STORE_AFTER) {
        if (!(await store.applyFleetChanges(changes, rules, now(), { name, from, upto: last }))) break;
        from = last;
      }
      this.#read.set(name, (after = last));
    }
    return true;
  }

  async #rules(): Promise<FleetRules> {
    const { store } = this.#options;
    const [campaigns, progress] = [await store.listRenewals(), await store.fleetProgress()];
    return this.#rulesWith(campaigns, progress.has('walked'));
  }

  #rulesWith(campaigns: readonly RenewalRow[], hasWalked: boolean): FleetRules {
    const { cas, authorities, forgetExpired, reports } = this.#options;
    const configs = new Map(cas.all.map(({ label, config }) => [label, config]));
    const renewalOf = (label: string) => configs.get(label)?.renewal ?? RENEWAL_DEFAULTS;
    return {
      forget: forgetExpired() * DAY,
      expected: (label) => label === null || renewalOf(label).expected,
      authorities: new Set(authorities().flatMap(fingerprintsOf)),
      requiresDevices: (label) => configs.get(label)?.devices === 'required',
      window: (row) => renewalWindow(row, renewalOf(row.label ?? row.ca), campaigns),
      // States from before the first start are not.
      reports: reports && hasWalked,
    };
  }

  /** Of everything that the windows and the lists depend on. */
  #fingerprint(campaigns: readonly RenewalRow[]): string {
    const { cas, authorities, forgetExpired } = this.#options;
    const labels = cas.all.map(({ label, config: { renewal, devices } }) => [label, renewal, devices]);
    const running = campaigns.map(({ id, begins, due }) => [id, begins, due]);
    const fingerprints = authorities().map(({ fingerprint }) => fingerprint);
    const all = [labels.sort(), running, forgetExpired(), fingerprints.sort()];
    return hash('sha256', JSON.stringify(all), 'base64url');
  }
}

const chainName = (node: string): string => `audit ${node}`;
