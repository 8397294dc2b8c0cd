import { measured, measuredAtOnce } from '../../dependency-calls.ts';
import { unavailable } from '../../errors.ts';
import type { LookupKeyOptions } from '../lookup-key-file.ts';
import { readOnly } from '../calls/errors.ts';
import { isAnswer, WriteQueue } from '../calls/write-queue.ts';
import { type Calls, callsOf, type ReadOperation } from '../operation.ts';
import { runAtOnce } from '../port.ts';
import type { Store, StoreOptions } from '../store.ts';
import { AuditLog } from './audit-log.ts';
import { type Db, openReadOnly, openWritable, toEstuaryError } from './database.ts';
import { GroupCommit } from './group-commit.ts';
import { readOperations, writeOperations } from './operations.ts';
import { ReadingThread } from './reading-thread.ts';
import { StoreFiles } from './store-files.ts';
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
  const { path, now = Date.now, onBehind = () => undefined } = options;
  const { group, operations } = await openWriter(options, now());
  try {
    group.files = new StoreFiles(path, group.db.name);
    const db = openReadOnly(path);
    const thread = new ReadingThread(path);
    // One service owns the file, so no lease guards its work.
    const queue = new WriteQueue(group, { now, onBehind });
    const writes = callsOf(operations, (operation) => queue.callOf(operation));
    const { checkpoint, indexForSearch, ...reads } = readCalls(db, group, thread);
    group.checkpoint = () => queue.between(checkpoint);
    let closing: Promise<void> | undefined;
    async function close(): Promise<void> {
      await queue.close();
      await thread.close();
      db.close();
      group.close();
    }
    return {
      ...reads,
      ...writes,
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

/** A store of which the reads work, and nothing else, also while a server uses it. @throws EstuaryError as {@link openStore} */
export function openStoreForReading({ path, auditFile }: Pick<SqliteStoreOptions, 'path' | 'auditFile'>): Store {
  try {
    const db = openReadOnly(path);
    const reads = callsOf(readOperations(db), ({ run }) => (...args) => {
      try {
        return Promise.resolve(runAtOnce(run(...args)));
      } catch (error) {
        return Promise.reject(toEstuaryError(error));
      }
    });
    const writes = callsOf(writeOperations(db, new AuditLog(db, auditFile)), () => readOnly);
    return { ...reads, ...writes, checkWritable: readOnly, close: () => Promise.resolve(void db.close()) };
  } catch (error) {
    throw toEstuaryError(error);
  }
}

async function openWriter(options: SqliteStoreOptions, time: number) {
  const { path, auditFile, node, lookupKey = { configured: undefined, required: true } } = options;
  let opened: { close(): unknown } | undefined;
  try {
    const db = openWritable(path);
    opened = db;
    settleLookups(db, path, lookupKey, time);
    const log = new AuditLog(db, auditFile, node);
    const group = new GroupCommit(db, log, options.onCommit);
    opened = group;
    await group.recover(time);
    return { group, operations: writeOperations(db, log) };
  } catch (error) {
    opened?.close();
    throw toEstuaryError(error);
  }
}

/**
 * Slow reads run in the thread. The others run by the connection that writes, which keeps its pages in memory between
 * commits; while its transaction is open, by another.
 */
function readCalls(db: Db, group: GroupCommit, thread: ReadingThread): Calls<ReturnType<typeof readOperations>> {
  const during = readOperations(db);
  return callsOf(readOperations(group.db), (between, name) => {
    if (between.kind === 'slow') return (...args) => group.durable(() => thread.call(name, args));
    const { run }: ReadOperation = during[name];
    const call = (args: readonly never[]): unknown => {
      try {
        return runAtOnce((group.db.inTransaction ? run : between.run)(...args));
      } catch (error) {
        if (!db.open) throw unavailable('STORE_UNAVAILABLE', 'the store is closed');
        throw toEstuaryError(error);
      }
    };
    const dependency = { dependency: 'store_read' };
    return (...args) =>
      group.isForcing
        ? measured(dependency, () => group.durable(() => call(args)), isAnswer)
        : new Promise((resolve) =>
            resolve(measuredAtOnce(dependency, () => group.durableAtOnce(() => call(args)), isAnswer)),
          );
  });
}
