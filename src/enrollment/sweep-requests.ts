import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import { every } from '../process/turns.ts';
import type { CmcStore } from '../store/cmc-store.ts';
import type { RequestLifetimes, RequestStore } from '../store/request-store.ts';
import { PURGED_AT_ONCE } from '../store/port.ts';

interface SweepOptions {
  readonly store: Pick<CmcStore & RequestStore, 'expireRequests' | 'purgeCmcMessages'>;
  readonly log: Logger;
  readonly now: () => number;
  readonly lifetimes: RequestLifetimes;
  /** Whether this node performs the task. */
  readonly isOnDuty: () => boolean;
  /** Looks up submissions to remote CAs whose response was lost. Never rejects. */
  readonly lookForUnanswered: () => Promise<void>;
}

/** Milliseconds between sweeps; lifetimes are at least minutes. */
const INTERVAL = 30_000;

/** Ends and deletes expired queued requests and CMC messages periodically. Returns a function that stops it. */
export const sweepRequests = (options: SweepOptions): (() => void) => every(INTERVAL, () => void sweep(options));

/** Never rejects: failures are retried in the next sweep. */
async function sweep({ store, log, now, lifetimes, isOnDuty, lookForUnanswered }: SweepOptions): Promise<void> {
  if (!isOnDuty()) return;
  await lookForUnanswered();
  try {
    let [expired, purged, batch] = [0, 0, PURGED_AT_ONCE];
    for (; batch === PURGED_AT_ONCE; purged += batch) {
      const swept = await store.expireRequests(lifetimes, now());
      expired += swept.expired;
      batch = swept.purged;
    }
    while ((await store.purgeCmcMessages(now() - lifetimes.retention)) === PURGED_AT_ONCE);
    if (expired + purged > 0) log.info({ expired, purged }, 'expired or deleted queued requests');
  } catch (error) {
    log.warn({ detail: describe(error) }, 'cannot expire queued requests');
  }
}
