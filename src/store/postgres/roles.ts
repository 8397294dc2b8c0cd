/** Creates the writer of a PostgreSQL store for one node. */
import type { PostgresDatabase } from '../calls/database-options.ts';
import { AuditLog } from './audit-log.ts';
import { connect } from './connection.ts';
import { GroupCommit, type WriteOperation } from './group-commit.ts';
import { connectToMigrate, migrate } from './migrate.ts';
import { writeOperations } from './operations.ts';
import { settleLookups } from './token-lookups.ts';

/** @param time of records about findings @throws EstuaryError if the database or the audit file is unusable */
export async function openPostgresWriter(options: PostgresDatabase, time: number): Promise<GroupCommit> {
  const { server, node, audit_file, lookup_key } = options;
  const first = await connectToMigrate(server, `${node} schema`);
  try {
    await migrate(first);
    await settleLookups(first, lookup_key, time);
  } finally {
    first.end();
  }
  const operations = new Map<string, WriteOperation>();
  const group = new GroupCommit(
    () => connect(server, `${node} writes`),
    (db) => {
      const log = new AuditLog(db, audit_file, node);
      for (const [name, operation] of Object.entries(writeOperations(db, log, node))) operations.set(name, operation);
      return { operations, log };
    },
  );
  try {
    await group.recover(time);
  } catch (error) {
    group.close();
    throw error;
  }
  return group;
}
