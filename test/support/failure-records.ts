import { FailureRecords } from '../../src/auth/failure-records.ts';
import type { Store } from '../../src/store/store.ts';
import { KeptLog } from './kept-log.ts';

/** The rejections reported to a store. */
export function failureRecords(store: Store, now: () => number = Date.now): FailureRecords {
  return new FailureRecords({ store, log: new KeptLog(), now });
}
