/** Who writes a PostgreSQL store for one server. */
import type { PostgresDatabase } from '../calls/database-options.ts';
import { AuditLog } from './audit-log.ts';
import { connect } from './connection.ts';
import { GroupCommit, type WriteOperation } from './group-commit.ts';
import { connectToMigrate, migrate } from './migrate.ts';
import { writeOperations } from './operations.ts';
import { settleLookups } from './token-lookups.ts';

/**
 * @param time milliseconds since the epoch, for records about what is found
 * @throws EstuaryError why the database or the audit file cannot be used
 */
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
