/** Updates the index for substring searches in the background. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { SearchStore } from '../store/store.ts';
import type { Part } from './part.ts';

/** Milliseconds between runs, and between batches, for other users of the store. */
const INTERVAL = 2000;
const BREATH = 20;

export class SearchIndex implements Part {
  readonly #store: SearchStore;
  readonly #isOnDuty: () => boolean;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;

  /** @param isOnDuty whether this node performs the task */
  constructor(store: SearchStore, log: Pick<Logger, 'warn'>, isOnDuty: () => boolean = () => true) {
    this.#isOnDuty = isOnDuty;
    this.#store = store;
    this.#log = log;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let failing = false;
    while (!this.#stopped.signal.aborted) {
      let more = false;
      try {
        if (this.#isOnDuty() && (await this.#store.isSearchBehind())) more = await this.#store.indexForSearch();
        failing = false;
      } catch (error) {
        if (!failing) this.#log.warn({ detail: describe(error) }, 'cannot index names for searches');
        failing = true;
      }
      await delay(more ? BREATH : INTERVAL, undefined, { signal: this.#stopped.signal, ref: false }).catch(
        () => undefined,
      );
    }
  }
}
