/** SIGHUP: reads the configuration again and brings it into force, wholly or not at all. */
import { planReload } from '../config/diff.ts';
import { loadConfig } from '../config/load.ts';
import { readMaterial } from '../config/material/load-material.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { describe } from '../errors.ts';
import type { ServiceCondition } from '../http/admin/dependencies.ts';
import type { Logger } from '../log.ts';
import type { Store } from '../store/store.ts';

/** A new configuration that is read and checked, and changes nothing yet. One of the two is called, once. */
export interface Prepared {
  /** Brings it into force; cannot fail. */
  apply(): void;
  drop(): void;
}

/** What takes a new configuration: one process, or a supervisor for all of its workers. */
export type Prepare = (config: Config, material: Material) => Promise<Prepared>;

export interface ReloadsOptions {
  readonly config: Config;
  readonly material: Material;
  readonly configFile: string;
  readonly store: Pick<Store, 'audit' | 'reopenAuditFile'>;
  readonly log: Logger;
  readonly prepare: Prepare;
}

export class Reloads {
  readonly #options: ReloadsOptions;
  #config: Config;
  #last: { readonly at: number; readonly ok: boolean } | undefined;

  constructor(options: ReloadsOptions) {
    this.#options = options;
    this.#config = options.config;
  }

  /** Whether the last one failed, so that what is in force is not what the file says. */
  get failed(): boolean {
    return this.#last?.ok === false;
  }

  /** What `/readyz` and the metrics tell of it. */
  get condition(): Pick<ServiceCondition, 'reloadFailed' | 'lastReload'> {
    return { reloadFailed: this.failed, ...(this.#last === undefined ? {} : { lastReload: this.#last }) };
  }

  /** One reload: one outcome, one audit record. Never throws. Not to be called while one is under way. */
  async reload(): Promise<void> {
    const { log, store } = this.#options;
    try {
      await this.#reload();
      this.#last = { at: Date.now(), ok: true };
    } catch (error) {
      this.#last = { at: Date.now(), ok: false };
      const detail = describe(error);
      log.error({ detail }, 'reload failed; the old configuration stays in force');
      await store
        .audit([{ type: 'config.reload', outcome: 'failure', detail }])
        .catch((failure: unknown) => log.error({ detail: describe(failure) }, 'reload failure not audited'));
    }
  }

  async #reload(): Promise<void> {
    const { configFile, log, store, prepare, material: atStart } = this.#options;
    await store.reopenAuditFile();
    const { config, material, warnings } = await loadConfig(configFile, process.env);
    const plan = planReload(this.#config, config);
    // Where keys stay as they were, so do the files that they name; the CAs' are those of the start.
    const live = plan.restart.length === 0 ? material : await readMaterial(plan.config, atStart.cas);
    const prepared = await prepare(plan.config, live);
    try {
      await store.audit([{ type: 'config.reload', outcome: 'success', detail: plan.live.join(', ') }]);
    } catch (error) {
      prepared.drop();
      throw error;
    }
    prepared.apply();
    this.#config = plan.config;
    log.level = plan.config.log.level;
    for (const { key, message } of warnings) log.warn({ key }, message);
    if (plan.restart.length > 0) log.warn({ keys: plan.restart }, 'changed keys that need a restart');
    log.info({ keys: plan.live }, 'configuration reloaded');
  }
}
