import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import { every } from '../process/turns.ts';
import type { CmcStore } from '../store/cmc-store.ts';
import type { RequestLifetimes, RequestStore } from '../store/request-store.ts';
import { PURGED_AT_ONCE } from '../store/retention-store.ts';

interface SweepOptions {
  readonly store: Pick<CmcStore & RequestStore, 'expireRequests' | 'purgeCmcMessages'>;
  readonly log: Logger;
  readonly now: () => number;
  readonly lifetimes: RequestLifetimes;
  /** Whether it is for this process to do: of several nodes, one does. */
  readonly isOnDuty: () => boolean;
  /** Looks into submissions to remote CAs whose answer was lost. Never rejects. */
  readonly lookForUnanswered: () => Promise<void>;
}

/** Milliseconds between sweeps; the lifetimes are minutes at least. */
const INTERVAL = 30_000;

/** Ends and deletes queued requests and CMC messages whose time is over, now and from time to time. Returns what stops it. */
export const sweepRequests = (options: SweepOptions): (() => void) => every(INTERVAL, () => void sweep(options));

/** Never rejects: what could not be done now is done the next time. */
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
    if (expired + purged > 0) log.info({ expired, purged }, 'queued requests whose time is over');
  } catch (error) {
    log.warn({ detail: describe(error) }, 'queued requests could not be swept');
  }
}
