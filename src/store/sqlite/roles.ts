/** The two threads that have an SQLite database open: one writes, with group commit, and one reads. */
import { AuditLog } from './audit-log.ts';
import { type Call, type Reply, toPlainError } from '../calls/calls.ts';
import { type Db, openReadOnly, openWritable } from './database.ts';
import { toEstuaryError } from './errors.ts';
import { GroupCommit, type WriteOperation } from './group-commit.ts';
import { readOperations, writeOperations } from './operations.ts';
import type { Role } from '../calls/role.ts';
import { watchRevocations } from './revocation-watch.ts';
import type { SqliteDatabase } from '../calls/database-options.ts';
import { settleLookups } from './token-lookups.ts';

/**
 * @param time milliseconds since the epoch, for records about what is found
 * @throws EstuaryError why the database or the audit file cannot be used
 */
export function openWriter(options: SqliteDatabase, time: number): Role {
  let opened: Db | undefined;
  try {
    const db = openWritable(options.path);
    opened = db;
    settleLookups(db, options.path, options.lookup_key, time);
    const log = new AuditLog(db, options.audit_file, options.node);
    const operations = new Map<string, WriteOperation>(Object.entries(writeOperations(db, log)));
    const group = new GroupCommit(db, log, operations);
    group.recover(time);
    return {
      operations: [...operations.keys()],
      revocations: watchRevocations(db),
      carryOut: (calls) => group.run(calls, calls[0]?.time ?? time),
      close() {
        log.close();
        db.close();
      },
    };
  } catch (error) {
    opened?.close();
    throw toEstuaryError(error);
  }
}

/** @throws as {@link openWriter} */
export function openReader({ path }: SqliteDatabase): Role {
  const db = openExisting(path);
  const operations = new Map<string, (...args: never[]) => unknown>(Object.entries(readOperations(db)));
  const read = (call: Call): Reply => {
    const operation = operations.get(call.operation);
    try {
      if (operation === undefined) throw new Error(`no such operation: ${call.operation}`);
      return { id: call.id, value: operation(...call.args) };
    } catch (error) {
      return { id: call.id, error: toPlainError(toEstuaryError(error)) };
    }
  };
  return { operations: [...operations.keys()], carryOut: (calls) => calls.map(read), close: () => void db.close() };
}

function openExisting(path: string): Db {
  try {
    return openReadOnly(path);
  } catch (error) {
    throw toEstuaryError(error);
  }
}
