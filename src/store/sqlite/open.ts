import type { AuditEvent } from '../../audit/event.ts';
import type { Store } from '../store.ts';
import type { ReadOperations, WriteOperations } from './operations.ts';
import { RevokedSerials } from '../calls/revoked-serials.ts';
import { busyLoop } from '../calls/busy-loop.ts';
import { StoreCaller } from '../calls/caller.ts';
import { socketLink } from '../calls/socket-link.ts';
import { callsOf } from '../calls/store-calls.ts';
import { observed } from '../calls/observed.ts';
import type { WriterAddress } from '../calls/writer-address.ts';
import { threadLink } from '../calls/thread-link.ts';
import type { LookupKeyOptions, SqliteDatabase } from '../calls/database-options.ts';

/** Milliseconds between two attempts to start a thread again, at most. */
const THREAD_PAUSE = 5000;
/** The same for connections to a process, which its supervisor starts again. */
const PROCESS_PAUSE = 400;

export interface StoreOptions {
  /** The database; its folder is created where missing. */
  readonly path: string;
  /** The audit file; likewise. */
  readonly auditFile: string;
  /** The name of this node, in its audit records. */
  readonly node?: string;
  /** The key of the tokens' lookups; one made beside the database unless it says otherwise. */
  readonly lookupKey?: LookupKeyOptions;
  /** No other process writes this database while it is open: what is revoked is known without asking it. */
  readonly alone?: boolean;
  /** Where the database is read, and written where no other process does: in threads of this one unless a test says otherwise. */
  readonly link?: typeof threadLink;
  /** Given where another process writes the database for this one and others (writer-keeper.ts). */
  readonly writer?: WriterAddress;
  /** Milliseconds since the epoch; `Date.now` unless a test says otherwise. */
  readonly now?: () => number;
  /** Told of the events of requests, certificates and refused credentials once they are committed, for the metrics. */
  readonly onCommit?: (events: readonly AuditEvent[]) => void;
}

/**
 * Opens the SQLite store: creates or migrates the database, reconciles the audit file with it, and starts the threads,
 * one that writes, and commits the calls that wait together in one transaction, and one that reads beside it. Where another
 * process writes, it connects to that in place of the first.
 *
 * Its calls are the operations of whoever has the database (operations.ts): one that {@link Store} declares and no table has does
 * not compile here.
 *
 * @throws {EstuaryError} what keeps it from working, e.g. `STORE_UNAVAILABLE`, `STORE_TOO_NEW`, `STORE_FOREIGN`,
 *   `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`, `LOOKUP_KEY_MISSING`; the detail is for the operator
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { now = Date.now, onCommit = () => undefined, link = threadLink } = options;
  const common = databaseOptions(options);
  const revoked = new RevokedSerials();
  const open = options.writer;
  const writer = new StoreCaller({
    dependency: 'store_write',
    ...(open === undefined
      ? { open: link({ ...common, role: 'writer' }, now), longestPause: THREAD_PAUSE }
      : { open: socketLink(open.socket, open.name), longestPause: PROCESS_PAUSE }),
    now,
    isBusy: busyLoop(),
    revoked,
  });
  const reader = new StoreCaller({
    dependency: 'store_read',
    open: link({ ...common, role: 'reader' }, now),
    longestPause: THREAD_PAUSE,
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

/** What whoever has the database needs of these options. */
export function databaseOptions({ path, auditFile, node, lookupKey, alone = false }: StoreOptions): SqliteDatabase {
  return {
    driver: 'sqlite',
    path,
    audit_file: auditFile,
    node,
    lookup_key: lookupKey ?? { configured: undefined, required: true },
    tells_revocations: alone,
  };
}
