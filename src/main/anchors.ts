/** Notes the ends of the other nodes' audit chains in this node's, where several share a store: so a tail that is cut off is missed. */
import type { Anchor } from '../audit/event.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { AuditStore } from '../store/audit-store.ts';
import { type Part, Recurring } from './part.ts';

/** Milliseconds; a removed tail is found once it is ten seconds old. */
const INTERVAL = 4000;

export class Anchors implements Part {
  readonly #store: AuditStore;
  readonly #recurring: Recurring;
  /** By node. */
  readonly #known = new Map<string, Anchor>();
  #failing = false;

  constructor(store: AuditStore, log: Logger) {
    this.#store = store;
    this.#recurring = new Recurring(INTERVAL, async () => {
      try {
        await this.make();
        this.#failing = false;
      } catch (error) {
        if (!this.#failing)
          log.warn({ detail: describe(error) }, "the ends of other nodes' audit chains were not noted");
        this.#failing = true;
      }
    });
  }

  start(): Promise<void> {
    return this.#recurring.start();
  }

  stop(): Promise<void> {
    return this.#recurring.stop();
  }

  /** @throws what the store throws */
  async make(): Promise<void> {
    for (const anchor of await this.#store.anchorAudit([...this.#known.values()])) this.#known.set(anchor.node, anchor);
  }
}
