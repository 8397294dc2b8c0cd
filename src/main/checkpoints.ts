/**
 * Protects the ends of audit chains: signs the end periodically (`[audit] checkpoint_interval`) and writes it to the
 * audit log and the log, for export.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { CheckpointKey } from '../audit/checkpoint.ts';
import type { Anchor } from '../audit/event.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { AuditStore } from '../store/audit-store.ts';
import { Recurring } from './part.ts';

/** Milliseconds; a removed tail is detected once it is ten seconds old. */
const INTERVAL = 4000;

/** Records the ends of other nodes' chains in this node's chain, so that a truncated tail is detected. */
export class Anchors extends Recurring {
  readonly #store: AuditStore;
  readonly #log: Logger;
  readonly #known = new Map<string, Anchor>();
  #failing = false;

  constructor(store: AuditStore, log: Logger) {
    super(INTERVAL);
    this.#store = store;
    this.#log = log;
  }

  protected async work(): Promise<void> {
    try {
      await this.make();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        this.#log.warn({ detail: describe(error) }, 'cannot record the ends of the audit chains of other nodes');
      this.#failing = true;
    }
  }

  async make(): Promise<void> {
    for (const anchor of await this.#store.anchorAudit([...this.#known.values()])) this.#known.set(anchor.node, anchor);
  }
}

interface CheckpointsOptions {
  readonly store: AuditStore;
  readonly node: string;
  readonly log: Logger;
  readonly privateKey: KeyObject;
  readonly interval: number;
}

/** Runs in one process per node. */
export class Checkpoints extends Recurring {
  readonly #options: CheckpointsOptions;
  readonly #key: CheckpointKey;

  /** @throws InputError if the key type cannot sign */
  constructor(options: CheckpointsOptions) {
    super(options.interval);
    this.#options = options;
    this.#key = new CheckpointKey(createPublicKey(options.privateKey).export({ format: 'der', type: 'spki' }));
  }

  protected work(): Promise<void> {
    return this.make().catch((error: unknown) =>
      this.#options.log.error({ detail: describe(error) }, 'cannot create a checkpoint of the audit log'),
    );
  }

  /** Signs the latest record, unless it is a checkpoint. */
  async make(): Promise<void> {
    const { store, node, log, privateKey } = this.#options;
    const { items } = await store.listAudit({ node, limit: 1, order: 'desc' });
    const [newest] = items;
    if (newest === undefined || newest.type === 'audit.checkpoint') return;
    const checkpoint = await this.#key.sign(newest, privateKey);
    const detail = `record ${newest.seq} is the end of a chain that was signed`;
    await store.audit([{ type: 'audit.checkpoint', outcome: 'success', detail, checkpoint }]);
    log.info({ checkpoint }, 'checkpoint of the audit log');
  }
}
