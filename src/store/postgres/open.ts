import { refuseBehind, storedUpTo } from '../../audit/missing-records.ts';
import { type ChainHead, GENESIS_HASH } from '../../audit/record.ts';
import { EstuaryError } from '../../errors.ts';
import type { LookupKeyOptions } from '../lookup-key-file.ts';
import type { PostgresServer } from './connection.ts';
import { readOnly } from '../calls/errors.ts';
import { WriteQueue } from '../calls/write-queue.ts';
import { callsOf } from '../operation.ts';
import { run } from '../port.ts';
import type { Store, StoreOptions } from '../store.ts';
import { readOperations, writeOperations } from './operations.ts';
import { type Connection, connect } from './connection.ts';
import { Pool } from './pool.ts';
import { Queries } from './queries.ts';
import { AuditLog } from './audit-log.ts';
import { GroupCommit } from './group-commit.ts';
import { connectToMigrate, migrate } from './migrate.ts';
import { settleLookups } from './token-lookups.ts';

export interface PostgresStoreOptions extends StoreOptions {
  readonly server: PostgresServer;
  /** Unique among living nodes. */
  readonly node: string;
  readonly lookupKey: LookupKeyOptions;
  /** Connections of this process: one writes, the others read. */
  readonly poolSize: number;
}

/**
 * Opens the PostgreSQL store: migrates its schema, reconciles the audit file with this node's chain, and starts group
 * commit. Reads use a connection pool.
 * @throws {EstuaryError} such as `STORE_UNAVAILABLE`, `STORE_TOO_NEW`, `STORE_FOREIGN`, `AUDIT_UNAVAILABLE`,
 * `AUDIT_TAMPERED`, `LOOKUP_KEY_OTHER`; the detail is for the operator
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { now = Date.now, onBehind = () => undefined } = options;
  // The writer first: it creates the tables.
  const group = await openWriter(options, now());
  const pool = new Pool(options.server, `${options.node} reads`, Math.max(1, options.poolSize - 1), (connection) =>
    refuseOlder(connection, options).catch((error: unknown) => {
      if (error instanceof EstuaryError && error.code === 'STORE_BEHIND') onBehind(error);
      throw error;
    }),
  );
  try {
    await pool.start();
  } catch (error) {
    group.close();
    throw error;
  }
  const queue = new WriteQueue(group, options);
  const writes = callsOf(writeOperations(group.db, group.log, options.node), (operation) => queue.callOf(operation));
  return {
    ...readsOf(new Queries(pool), options.node),
    ...writes,
    checkWritable: () => writes.checkWritable(now()),
    async close() {
      pool.close();
      await queue.close();
      group.close();
    },
  };
}

const readsOf = (queries: Queries, node: string) =>
  callsOf(
    readOperations(queries, node),
    (operation) =>
      (...args) =>
        run(operation.run(...args)),
  );

/** A store of which the reads work, and nothing else. @throws EstuaryError as {@link openPostgresStore} */
export async function openPostgresStoreForReading({
  server,
  auditFile,
  node,
}: Pick<PostgresStoreOptions, 'server' | 'auditFile' | 'node'>): Promise<Store> {
  const pool = new Pool(server, `${node} check`, 2);
  await pool.start();
  const queries = new Queries(pool);
  const writes = callsOf(writeOperations(queries, new AuditLog(queries, auditFile, node), node), () => readOnly);
  return {
    ...readsOf(queries, node),
    ...writes,
    checkWritable: readOnly,
    close: () => {
      pool.close();
      return Promise.resolve();
    },
  };
}

/**
 * Each connection may reach a different server, such as an old primary after a failover. @throws EstuaryError 500
 * `STORE_BEHIND`
 */
async function refuseOlder(connection: Connection, { node, auditFile }: PostgresStoreOptions): Promise<void> {
  // Read it first: later commits are in the database too.
  const stored = storedUpTo(auditFile);
  const head = await new Queries(connection).get<ChainHead>`SELECT seq, hash FROM audit_head WHERE node = ${node}`;
  if (stored > (head?.seq ?? 0)) refuseBehind(auditFile, head ?? { seq: 0, hash: GENESIS_HASH });
}

/** @param time of records about findings @throws EstuaryError if the database or the audit file is unusable */
export async function openWriter(options: PostgresStoreOptions, time: number): Promise<GroupCommit> {
  const { server, node, auditFile, lookupKey, onCommit } = options;
  const first = await connectToMigrate(server, `${node} schema`);
  try {
    await migrate(first);
    await settleLookups(first, lookupKey, time);
  } finally {
    first.end();
  }
  const group = new GroupCommit(
    () => connect(server, `${node} writes`),
    (db) => new AuditLog(db, auditFile, node),
    onCommit,
  );
  try {
    await group.recover(time);
  } catch (error) {
    group.close();
    throw error;
  }
  return group;
}
