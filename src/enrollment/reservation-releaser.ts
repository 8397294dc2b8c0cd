import type { AuditEvent } from '../audit/event.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { IssuanceStore } from '../store/issuance-store.ts';

/** Milliseconds between attempts to close reservations. */
const RETRY = 2000;

/** Closes reservations without a certificate; retries in the background if the store fails. */
export class ReservationReleaser {
  readonly #store: Pick<IssuanceStore, 'releaseReservation'>;
  readonly #log: Pick<Logger, 'error'>;
  readonly #open = new Map<string, readonly AuditEvent[]>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Pick<IssuanceStore, 'releaseReservation'>, log: Pick<Logger, 'error'>) {
    this.#store = store;
    this.#log = log;
  }

  /** Never rejects. */
  async release(requestId: string, events: readonly AuditEvent[]): Promise<void> {
    try {
      await this.#store.releaseReservation(requestId, events);
    } catch (error) {
      this.#log.error({ request_id: requestId, detail: describe(error) }, 'reservation left open; will retry');
      this.#open.set(requestId, events);
      this.#schedule();
    }
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#retry(), RETRY).unref();
  }

  async #retry(): Promise<void> {
    for (const [requestId, events] of this.#open) {
      try {
        await this.#store.releaseReservation(requestId, events);
        this.#open.delete(requestId);
      } catch {
        this.#schedule();
        return;
      }
    }
  }

  /** Stops the retries. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
