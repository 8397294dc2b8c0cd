import type { AuditEvent } from '../../audit/event.ts';
import type { EstuaryError } from '../../errors.ts';
import type { Store } from '../store.ts';
import type { ReadOperations, WriteOperations } from './operations.ts';
import { RevokedSerials } from '../calls/revoked-serials.ts';
import { busyLoop } from '../calls/busy-loop.ts';
import { StoreCaller } from '../calls/caller.ts';
import { callsOf } from '../calls/store-calls.ts';
import { observed } from '../calls/observed.ts';
import { threadLink } from '../calls/thread-link.ts';
import type { LookupKeyOptions, SqliteDatabase } from '../calls/database-options.ts';

export interface StoreOptions {
  /** The database; its folder is created where missing. */
  readonly path: string;
  /** The audit file; likewise. */
  readonly auditFile: string;
  /** The name of this node, in its audit records. */
  readonly node?: string;
  /** The key of the tokens' lookups; one made beside the database unless it says otherwise. */
  readonly lookupKey?: LookupKeyOptions;
  /** How the database is reached: in threads, unless a test replaces it. */
  readonly link?: typeof threadLink;
  /** Milliseconds since the epoch; `Date.now` unless a test says otherwise. */
  readonly now?: () => number;
  /** Told of the events of requests, certificates and refused credentials once they are committed, for the metrics. */
  readonly onCommit?: (events: readonly AuditEvent[]) => void;
  /** Called when the database is found to be older than the audit file; nothing can be written from then on. */
  readonly onBehind?: (error: EstuaryError) => void;
}

/**
 * Opens the SQLite store: creates or migrates the database, reconciles the audit file with it, and starts two threads. One writes, and
 * commits waiting calls together in one transaction; the other reads in parallel. No other process may write while the store is open: the
 * process remembers what is revoked.
 *
 * The calls are the operations of the threads (operations.ts). This function does not compile if {@link Store} declares one that no
 * table has.
 *
 * @throws {EstuaryError} what keeps it from working, e.g. `STORE_UNAVAILABLE`, `STORE_TOO_NEW`, `STORE_FOREIGN`,
 *   `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`, `LOOKUP_KEY_MISSING`; the detail is for the operator
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { now = Date.now, onCommit = () => undefined, link = threadLink } = options;
  const common = databaseOptions(options);
  const revoked = new RevokedSerials();
  const writer = new StoreCaller({
    dependency: 'store_write',
    open: link({ ...common, role: 'writer' }, now),
    now,
    isBusy: busyLoop(),
    revoked,
    ...(options.onBehind === undefined ? {} : { onBehind: options.onBehind }),
  });
  const reader = new StoreCaller({
    dependency: 'store_read',
    open: link({ ...common, role: 'reader' }, now),
    now,
  });
  // The writer first: it makes the database that the reader opens.
  await writer.start();
  try {
    await reader.start();
  } catch (error) {
    await writer.close();
    throw error;
  }
  const reads = callsOf<ReadOperations>(reader);
  const writes = callsOf<WriteOperations>(writer);
  return {
    ...reads,
    ...writes,
    findRevoked: async (serial) => (revoked.mayHold(serial) ? reads.findRevoked(serial) : []),
    ...observed(writes, onCommit),
    checkWritable: () => writes.checkWritable(now()),
    async close() {
      await reader.close();
      await writer.close();
    },
  };
}

function databaseOptions({ path, auditFile, node, lookupKey }: StoreOptions): SqliteDatabase {
  return {
    driver: 'sqlite',
    path,
    audit_file: auditFile,
    node,
    lookup_key: lookupKey ?? { configured: undefined, required: true },
  };
}
