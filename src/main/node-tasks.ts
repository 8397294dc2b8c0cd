/** What each node does periodically for the store: retention, signed checkpoints, anchors of other chains, search index. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CheckpointKey } from '../audit/checkpoint.ts';
import type { Anchor } from '../audit/event.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { SearchStore, Store } from '../store/store.ts';
import { nodeName } from './open-store.ts';
import { type Part, recurring, reporting } from './part.ts';
import { retention } from './retention.ts';

/** Milliseconds; a removed tail is detected once it is ten seconds old. */
const ANCHOR_INTERVAL = 4000;
/** Milliseconds between updates of the search index, and between its batches, for other users of the store. */
const INDEX_INTERVAL = 2000;
const BREATH = 20;

interface Sources {
  readonly config: Config;
  readonly material: Material;
  readonly store: Store;
  readonly log: Logger;
  readonly now: () => number;
  /** Whether this node performs the tasks that only one node performs. */
  readonly isOnDuty: () => boolean;
}

export function nodeTasks({ config, material, store, log, now, isOnDuty }: Sources): Part[] {
  const { checkpointKey: key } = material;
  const interval = config.audit.checkpoint_interval * 1000;
  const warn = (message: string) => (detail: string) => log.warn({ detail }, message);
  const sign = interval > 0 && key !== undefined ? checkpointing(store, nodeName(config), log, key) : undefined;
  const unsigned = reporting(log, 'cannot create a checkpoint of the audit log');
  const anchor = quietly(anchoring(store), warn('cannot record the ends of the audit chains of other nodes'));
  return [
    retention({ config, store, log, now }),
    ...(sign === undefined ? [] : [recurring(interval, () => sign().catch(unsigned))]),
    ...(config.store.driver === 'postgres' ? [recurring(ANCHOR_INTERVAL, anchor)] : []),
    searchIndex(store, isOnDuty, warn('cannot index names for searches')),
  ];
}

/** Reports only the first of failures in succession. */
function quietly<T extends unknown[]>(work: (...args: T) => Promise<void>, report: (detail: string) => void) {
  let failing = false;
  return async (...args: T): Promise<void> => {
    try {
      await work(...args);
      failing = false;
    } catch (error) {
      if (!failing) report(describe(error));
      failing = true;
    }
  };
}

/** Records the ends of other nodes' chains in this node's chain, so that a truncated tail is detected. */
export function anchoring(store: AuditStore): () => Promise<void> {
  const known = new Map<string, Anchor>();
  return async () => {
    for (const anchor of await store.anchorAudit([...known.values()])) known.set(anchor.node, anchor);
  };
}

/**
 * Protects the end of the audit chain: signs the latest record, unless it is a checkpoint, and writes it to the audit log
 * and the log, for export. One node signs its own chain.
 * @throws InputError if the key type cannot sign
 */
export function checkpointing(
  store: AuditStore,
  node: string,
  log: Logger,
  privateKey: KeyObject,
): () => Promise<void> {
  const key = new CheckpointKey(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }));
  return async () => {
    const { items } = await store.listAudit({ node, limit: 1, order: 'desc' });
    const [newest] = items;
    if (newest === undefined || newest.type === 'audit.checkpoint') return;
    const checkpoint = await key.sign(newest, privateKey);
    const detail = `record ${newest.seq} is the end of a chain that was signed`;
    await store.audit([{ type: 'audit.checkpoint', outcome: 'success', detail, checkpoint }]);
    log.info({ checkpoint }, 'checkpoint of the audit log');
  };
}

/** Updates the index for substring searches in the background. */
function searchIndex(store: SearchStore, isOnDuty: () => boolean, report: (detail: string) => void): Part {
  const index = async ({ stopped }: { readonly stopped: AbortSignal }): Promise<void> => {
    while (!stopped.aborted && isOnDuty() && (await store.isSearchBehind())) {
      if (!(await store.indexForSearch())) break;
      await delay(BREATH);
    }
  };
  return recurring(INDEX_INTERVAL, quietly(index, report));
}
