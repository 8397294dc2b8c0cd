import type { Store } from '../store.ts';
import type { Events } from './calls.ts';

/** The calls with events of requests, certificates and rejected credentials: the arguments that are their events. */
const OBSERVED = {
  recordCertificate: 1,
  reserve: 1,
  claimRequest: 1,
  queueRequest: 2,
  revokeCertificate: 1,
  releaseCertificate: 2,
  recordFailure: 3,
  audit: 0,
  auditDevice: 1,
} as const satisfies { readonly [Name in keyof Store]?: number };

type Observed = keyof typeof OBSERVED;

/** Results with which a call has committed its events; a call without a result always has. */
const COMMITTED: ReadonlySet<unknown> = new Set([undefined, 'reserved', 'queued', 'revoked', 'released']);

/** Reports those events after their commit, for the metrics. */
export function observed(writes: Pick<Store, Observed>, onCommit: (events: Events) => void): Pick<Store, Observed> {
  const calls = Object.entries(OBSERVED).map(([name, place]) => {
    const write = writes[name as Observed] as (...args: unknown[]) => Promise<unknown>;
    const call = async (...args: unknown[]): Promise<unknown> => {
      const result = await write(...args);
      if (COMMITTED.has(result)) onCommit(args[place] as Events);
      return result;
    };
    return [name, call];
  });
  // The calls have the types of those that they make.
  return Object.fromEntries(calls) as Pick<Store, Observed>;
}
