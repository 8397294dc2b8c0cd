/** SIGHUP and `POST /admin/reload`: reads the configuration again and applies it completely or not at all. */
import {
  planReload,
  type ReloadOrder,
  type ReloadOutcome,
  type ReloadPlan,
  type ReloadReport,
} from '../config/diff.ts';
import { beforeReload } from '../ca/drivers.ts';
import { labelsOf } from '../config/labels.ts';
import { loadConfig } from '../config/load.ts';
import { certificateExpiries, type CertificateExpiry, endOf, type Material } from '../config/material/material.ts';
import { readMaterial } from '../config/material/load-material.ts';
import { type Fault, isOfLabel, reported, type Warning } from '../config/problem.ts';
import type { Config } from '../config/schema.ts';
import { describe, isUnavailable } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { ServiceState } from '../service-state-metrics.ts';
import type { Store } from '../store/store.ts';

/** A checked configuration that is not in force. Call exactly one of the two, once. */
export interface Prepared {
  /** What was found when the files were put together. */
  readonly faults: readonly Fault[];
  /** Puts it in force; cannot fail. */
  apply(): void;
  drop(): void;
}

interface ReloadsOptions {
  readonly config: Config;
  readonly material: Material;
  readonly configFile: string;
  readonly faults: readonly Fault[];
  readonly store: Pick<Store, 'audit' | 'reopenAuditFile' | 'countWaiting' | 'countOfOtherCas'>;
  readonly now: () => number;
  readonly log: Logger;
  readonly prepare: (config: Config, material: Material) => Promise<Prepared>;
}

/** A configuration with its files. */
interface Wanted {
  readonly plan: ReloadPlan;
  readonly material: Material;
  readonly faults: readonly Fault[];
  readonly report: Omit<ReloadReport, 'faults'>;
}

export class Reloads {
  readonly #options: ReloadsOptions;
  #config: Config;
  #material: Material;
  #faults: readonly Warning[];
  #last: ServiceState['lastReload'];
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ReloadsOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#material = options.material;
    this.#faults = ofFiles(options.faults);
  }

  /** Files that cannot be used, which affect more than a label. */
  get faults(): readonly Warning[] {
    return this.#faults;
  }

  /** For `/readyz` and the metrics. */
  get last(): ServiceState['lastReload'] {
    return this.#last;
  }

  /** Runs one reload, with one outcome and one audit record. Concurrent calls wait. Never rejects. */
  reload(order: ReloadOrder): Promise<ReloadOutcome> {
    const turn = this.#turn.then(() => (order.dryRun ? this.#try() : this.#reload(order)));
    this.#turn = turn;
    return turn;
  }

  async #reload(order: ReloadOrder): Promise<ReloadOutcome> {
    const { log, store } = this.#options;
    try {
      const report = await this.#bringIntoForce(order);
      this.#last = { at: Date.now(), ok: true };
      return { ok: true, report };
    } catch (error) {
      this.#last = { at: Date.now(), ok: false };
      const detail = describe(error);
      log.error({ detail }, 'reload failed; the old configuration stays in force');
      await store
        .audit([{ type: 'config.reload', outcome: 'failure', ...order.by, detail }])
        .catch((failure: unknown) =>
          log.error({ detail: describe(failure) }, 'cannot write the failed reload to the audit log'),
        );
      return notReloaded(error);
    }
  }

  /** A dry run: prepares the reload and drops it. */
  async #try(): Promise<ReloadOutcome> {
    try {
      const { prepared, report } = await this.#prepare();
      prepared.drop();
      return { ok: true, report };
    } catch (error) {
      return notReloaded(error);
    }
  }

  async #bringIntoForce({ by }: ReloadOrder): Promise<ReloadReport> {
    const { log, store } = this.#options;
    await store.reopenAuditFile();
    beforeReload();
    const { plan, material, prepared, faults, report } = await this.#prepare();
    try {
      const found = report.faults.map(({ key, message }) => `${key}: ${message}`);
      const detail = [plan.live.join(', '), ...found].filter((part) => part !== '').join('; ');
      await store.audit([{ type: 'config.reload', outcome: 'success', ...by, detail }]);
    } catch (error) {
      prepared.drop();
      throw error;
    }
    prepared.apply();
    this.#config = plan.config;
    this.#material = material;
    this.#faults = ofFiles(faults);
    log.level = plan.config.log.level;
    for (const { key, message } of [...report.warnings, ...report.faults]) log.warn({ key }, message);
    if (plan.restart.length > 0) log.warn({ keys: plan.restart }, 'changed keys that need a restart');
    const certificates = report.certificates.map(({ notAfter, ...certificate }) => ({
      ...certificate,
      notAfter: new Date(notAfter).toISOString(),
    }));
    log.info({ keys: plan.live, certificates }, 'configuration reloaded');
    return report;
  }

  async #prepare(): Promise<Wanted & { readonly prepared: Prepared; readonly report: ReloadReport }> {
    const wanted = await this.#read();
    const prepared = await this.#options.prepare(wanted.plan.config, wanted.material);
    const faults = [...wanted.faults, ...prepared.faults];
    return { ...wanted, prepared, faults, report: { ...wanted.report, faults: faults.map(reported) } };
  }

  async #read(): Promise<Wanted> {
    const { configFile } = this.#options;
    const { memory } = this.#material;
    const before = { config: this.#config, material: this.#material };
    const { config, material, warnings, faults } = await loadConfig(configFile, process.env, Date.now(), before);
    const plan = planReload(this.#config, config);
    // If a restart is needed, the configured files stay as they were.
    const live = plan.restart.length === 0 ? material : await readMaterial(plan.config, memory);
    const known = new Set(inForce(this.#material).map(identify));
    const certificates = inForce(live).map((certificate) => ({
      ...certificate,
      isNew: !known.has(identify(certificate)),
    }));
    return {
      plan,
      material: live,
      faults,
      report: {
        changed: plan.live,
        needsRestart: plan.restart,
        certificates,
        warnings: [
          ...warnings,
          ...(await this.#orphans(plan.config)),
          ...(await withoutCa(plan.config, this.#options.store, this.#options.now())),
        ],
      },
    };
  }

  /** Queued requests of removed labels: they cannot be approved or collected until the label returns. */
  async #orphans(next: Config): Promise<Warning[]> {
    const kept = new Set(labelsOf(next).map(({ table }) => table.label));
    const gone = new Set(labelsOf(this.#config).flatMap(({ table: { label } }) => (kept.has(label) ? [] : label)));
    if (gone.size === 0) return [];
    const { pending } = await this.#options.store.countWaiting(this.#options.now());
    return pending
      .filter(({ ca }) => gone.has(ca))
      .map(({ ca, count }) => ({
        key: 'ca',
        message: `the label "${ca}" was removed, and ${count} ${count === 1 ? 'request waits' : 'requests wait'} in its queue`,
      }));
  }
}

const notReloaded = (error: unknown): ReloadOutcome => ({
  ok: false,
  reason: describe(error),
  ...(isUnavailable(error) ? { unavailable: error } : {}),
});

/** Warns of certificates whose label no CA has, as after a renaming. */
export async function withoutCa(
  { ca }: Pick<Config, 'ca'>,
  store: Pick<Store, 'countOfOtherCas'>,
  now: number,
): Promise<Warning[]> {
  const labels = ca.map(({ label }) => label);
  return (await store.countOfOtherCas(labels, now)).map((of) => ({
    key: 'ca',
    message: `no CA has the label "${of.ca}" of ${of.count} certificates that have not expired: no CRL or OCSP response shows their revocations (the former label; a CA with another label is another CA)`,
  }));
}

/** Faults that no CA's health shows, nor an expiry. */
const ofFiles = (faults: readonly Fault[]): Warning[] =>
  faults.filter((fault) => fault.isTime !== true && (fault.isKept === true || !isOfLabel(fault))).map(reported);

/** Including the CAs' own files. */
function inForce(material: Material): CertificateExpiry[] {
  const own = material.cas.flatMap(({ table: { label: ca }, certificates }) =>
    certificates === undefined
      ? []
      : [certificates.certificate, ...certificates.issuers].map((certificate) => endOf({ use: 'ca', ca }, certificate)),
  );
  return [...certificateExpiries(material), ...own];
}

const identify = ({ use, ca, subject, serial }: CertificateExpiry): string =>
  JSON.stringify([use, ca, subject, serial]);
