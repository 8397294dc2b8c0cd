/** Who has the database: one that writes, with group commit, or one that reads beside it. */
import { AuditLog } from './audit-log.ts';
import { type Call, type Reply, toPlainError } from './calls.ts';
import { openReadOnly, openWritable } from './database.ts';
import { toEstuaryError } from './errors.ts';
import { GroupCommit, type WriteOperation } from './group-commit.ts';
import { readOperations, writeOperations } from './operations.ts';
import { type RevocationWatch, watchRevocations } from './revoked-serials.ts';
import type { DatabaseOptions } from './thread-link.ts';
import { settleLookups } from './token-lookups.ts';

export interface Role {
  /** The names of what it carries out. */
  readonly operations: readonly string[];
  /** One reply for each call, in their order. */
  carryOut(calls: readonly Call[]): readonly Reply[];
  /** Where it alone revokes. */
  readonly revocations?: RevocationWatch | undefined;
  close(): void;
}

/**
 * @param time milliseconds since the epoch, for records about what is found
 * @throws EstuaryError, or what {@link toEstuaryError} makes one of: why the database or the audit file cannot be used
 */
export function openWriter(options: DatabaseOptions, time: number): Role {
  const db = openWritable(options.path);
  try {
    settleLookups(db, options.path, options.lookup_key, time);
    const log = new AuditLog(db, options.audit_file, options.node);
    const operations = new Map<string, WriteOperation>(Object.entries(writeOperations(db, log)));
    const group = new GroupCommit(db, log, operations);
    group.recover(time);
    return {
      operations: [...operations.keys()],
      revocations: options.tells_revocations ? watchRevocations(db) : undefined,
      carryOut: (calls) => group.run(calls, calls[0]?.time ?? time),
      close() {
        log.close();
        db.close();
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** @throws as {@link openWriter} */
export function openReader({ path }: DatabaseOptions): Role {
  const db = openReadOnly(path);
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
  return { operations: [...operations.keys()], carryOut: (calls) => calls.map(read), close: () => db.close() };
}
