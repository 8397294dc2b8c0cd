/** Counts rejected requests by label and code until the store has them, so that a flood of requests costs few writes. */
import { STATISTICS_HOUR, type Rejection, type RejectionStore } from './store/statistics-store.ts';

/** Milliseconds between writes. */
export const REJECTIONS_WRITTEN = 10_000;

export class Rejections {
  #pending = new Map<string, Rejection>();

  /** @param ca a configured label, or empty. @param code never client text */
  count(ca: string, code: string, count = 1): void {
    const key = `${ca} ${code}`;
    this.#pending.set(key, { ca, code, count: count + (this.#pending.get(key)?.count ?? 0) });
  }

  /** What the store does not have yet. */
  get pending(): readonly Rejection[] {
    return [...this.#pending.values()];
  }

  /** Adds them to the current hour. @throws what the store throws; they are written later */
  async flush(store: Pick<RejectionStore, 'addRejections'>, now: number): Promise<void> {
    const { pending } = this;
    if (pending.length === 0) return;
    this.#pending = new Map();
    try {
      await store.addRejections(Math.floor(now / STATISTICS_HOUR), pending);
    } catch (error) {
      for (const { ca, code, count } of pending) this.count(ca, code, count);
      throw error;
    }
  }
}
