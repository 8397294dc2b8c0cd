import { measured } from '../../dependency-calls.ts';
import { unavailable } from '../../errors.ts';
import type { LookupKeyOptions } from '../lookup-key-file.ts';
import { observed } from '../calls/observed.ts';
import { callsOf, type StoreCalls } from '../calls/calls.ts';
import { isAnswer, WriteQueue } from '../calls/write-queue.ts';
import type { Store, StoreOptions } from '../store.ts';
import { AuditLog } from './audit-log.ts';
import { type Db, openReadOnly, openWritable, toEstuaryError } from './database.ts';
import { GroupCommit } from './group-commit.ts';
import {
  type QuickReads,
  quickReads,
  type SlowOperations,
  type WriteOperations,
  writeOperations,
} from './operations.ts';
import { ReadingThread } from './reading-thread.ts';
import { settleLookups } from './token-lookups.ts';

interface SqliteStoreOptions extends StoreOptions {
  /** The database; its folder is created if it does not exist. */
  readonly path: string;
  /** Default: a file next to the database. */
  readonly lookupKey?: LookupKeyOptions;
}

/**
 * Opens the SQLite store: creates or migrates the database, and reconciles the audit file with it. Writes and quick reads run in the
 * main thread, which never waits for the disk (group-commit.ts); slow reads run in a thread (docs/internals/performance.md).
 *
 * The calls are the operations of operations.ts. This function does not compile if {@link Store} declares one that no table has.
 *
 * @throws {EstuaryError} what keeps it from working, e.g. `STORE_UNAVAILABLE`, `STORE_TOO_NEW`, `STORE_FOREIGN`,
 *   `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`, `LOOKUP_KEY_MISSING`; the detail is for the operator
 */
export async function openStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, now = Date.now, onCommit = () => undefined, onBehind = () => undefined } = options;
  const group = await openWriter(options, now());
  try {
    const db = openReadOnly(path);
    const thread = new ReadingThread(path);
    const queue = new WriteQueue(group, now, onBehind);
    const writes = callsOf<WriteOperations>(queue);
    const { checkpoint, indexForSearch, ...slow } = callsOf<SlowOperations>({
      operations: thread.operations,
      call: (operation, args) => group.durable(() => thread.call(operation, args)),
    });
    group.checkpoint = () => queue.between(checkpoint);
    let closing: Promise<void> | undefined;
    async function close(): Promise<void> {
      await queue.close();
      await thread.close();
      db.close();
      group.close();
    }
    return {
      ...quickCalls(db, group),
      ...slow,
      ...writes,
      ...observed(writes, onCommit),
      indexForSearch: () => queue.between(indexForSearch),
      async checkWritable() {
        await writes.checkWritable(now());
        group.refuseFailedCheckpoint();
      },
      close: () => (closing ??= close()),
    };
  } catch (error) {
    group.close();
    throw toEstuaryError(error);
  }
}

async function openWriter(options: SqliteStoreOptions, time: number): Promise<GroupCommit> {
  const { path, auditFile, node, lookupKey = { configured: undefined, required: true } } = options;
  let opened: { close(): unknown } | undefined;
  try {
    const db = openWritable(path);
    opened = db;
    settleLookups(db, path, lookupKey, time);
    const log = new AuditLog(db, auditFile, node);
    const group = new GroupCommit(db, log, new Map(Object.entries(writeOperations(db, log))));
    opened = group;
    await group.recover(time);
    return group;
  } catch (error) {
    opened?.close();
    throw toEstuaryError(error);
  }
}

/**
 * Reads by the connection that writes, which keeps its pages in memory between commits; while its transaction is open, by another.
 */
function quickCalls(db: Db, group: GroupCommit): StoreCalls<QuickReads> {
  type Reads = Readonly<Record<string, (...args: never[]) => unknown>>;
  const [between, during]: readonly [Reads, Reads] = [quickReads(group.db), quickReads(db)];
  const calls = Object.keys(between).map((name) => {
    const [first, second] = [between[name], during[name]];
    const call = (...args: never[]): Promise<unknown> =>
      group.durable(() => {
        try {
          return (group.db.inTransaction ? second : first)?.(...args);
        } catch (error) {
          if (!db.open) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
          throw toEstuaryError(error);
        }
      });
    return [name, (...args: never[]) => measured({ dependency: 'store_read' }, () => call(...args), isAnswer)] as const;
  });
  return Object.fromEntries(calls) as StoreCalls<QuickReads>;
}
