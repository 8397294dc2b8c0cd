/** Updates the index for substring searches in the background. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { SearchStore } from '../store/store.ts';
import { Recurring } from './part.ts';

/** Milliseconds between runs, and between batches, for other users of the store. */
const INTERVAL = 2000;
const BREATH = 20;

export class SearchIndex extends Recurring {
  readonly #store: SearchStore;
  readonly #isOnDuty: () => boolean;
  readonly #log: Pick<Logger, 'warn'>;
  #failing = false;

  /** @param isOnDuty whether this node performs the task */
  constructor(store: SearchStore, log: Pick<Logger, 'warn'>, isOnDuty: () => boolean) {
    super(INTERVAL);
    this.#isOnDuty = isOnDuty;
    this.#store = store;
    this.#log = log;
  }

  protected async work(): Promise<void> {
    try {
      while (!this.stopped.aborted && this.#isOnDuty() && (await this.#store.isSearchBehind())) {
        if (!(await this.#store.indexForSearch())) break;
        await delay(BREATH);
      }
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#log.warn({ detail: describe(error) }, 'cannot index names for searches');
      this.#failing = true;
    }
  }
}
