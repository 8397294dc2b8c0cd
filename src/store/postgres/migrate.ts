/**
 * Migrates a database to this program's schema, safe against concurrent migrations and nodes of the previous version.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { failed } from '../../errors.ts';
import type { PostgresServer } from './connection.ts';
import { connect, type Connection, refuseSharedSessions } from './connection.ts';
import { isHeldUp, toEstuaryError } from './errors.ts';
import { FIRST_VERSION, storeFailed, tooNew, tooOld } from '../calls/errors.ts';
import { MIGRATIONS, type Migration } from './schema.ts';
import { Queries } from './queries.ts';

/** The lock of all migrations: "estuary" and the subject, as one number. */
const LOCK = "hashtextextended('estuary migrations', 0)";
/** Milliseconds to wait for the lock, and for a migration: another node may be building indexes. */
const MAX_WAIT = 300_000;
/**
 * Milliseconds that a migration waits for a table before it backs off: later statements queue behind it, and nodes wait
 * at most five seconds.
 */
const TURN = 2000;
/** Milliseconds of the back-off. */
const PAUSE = 1000;

interface Version {
  readonly version: number;
  readonly serves: number;
}

/** A connection without response timeout. @throws EstuaryError 503 `STORE_UNAVAILABLE` */
export const connectToMigrate = (server: PostgresServer, purpose: string): Promise<Connection> =>
  connect(server, purpose, MAX_WAIT + 10_000);

/** Checks whether a server can start on the database; changes nothing. @throws EstuaryError the problem */
export async function checkDatabase(server: PostgresServer): Promise<void> {
  await refuseSharedSessions(server);
  const connection = await connect(server, 'check');
  try {
    await knownVersion(new Queries(connection), MIGRATIONS);
  } catch (error) {
    throw toEstuaryError(error);
  } finally {
    connection.end();
  }
}

/** {@link migrate} on its own connection. @throws EstuaryError also 503 `STORE_UNAVAILABLE` */
export async function migrateDatabase(server: PostgresServer): Promise<void> {
  await refuseSharedSessions(server);
  const connection = await connectToMigrate(server, 'schema');
  try {
    await migrate(connection);
  } catch (error) {
    throw toEstuaryError(error);
  } finally {
    connection.end();
  }
}

/**
 * @throws EstuaryError 500 `STORE_TOO_NEW` or `STORE_TOO_OLD` for an incompatible schema version, `STORE_FOREIGN` for
 * another program's tables
 */
export async function migrate(connection: Connection, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  const end = performance.now() + MAX_WAIT;
  for (;;)
    try {
      // Each migration has its own transaction.
      if (!(await step(connection, migrations))) return;
    } catch (error) {
      if (!isHeldUp(error) || connection.isBroken || performance.now() > end) throw error;
      await sleep(PAUSE);
    }
}

async function step(connection: Connection, migrations: readonly Migration[]): Promise<boolean> {
  const db = new Queries(connection);
  await connection.script(
    `BEGIN; SET LOCAL lock_timeout = ${MAX_WAIT}; SET LOCAL statement_timeout = ${MAX_WAIT}; SELECT pg_advisory_xact_lock(${LOCK})`,
  );
  try {
    const known = await knownVersion(db, migrations);
    if (known === undefined) await connection.script(VERSION_TABLE);
    const version = known === undefined ? FIRST_VERSION : known.version + 1;
    const next = migrations[version - FIRST_VERSION];
    if (next !== undefined) {
      await connection.script(`SET LOCAL lock_timeout = ${TURN}`);
      await connection.script(next.sql);
      await db.run`INSERT INTO estuary_schema (version, serves) VALUES (${version}, ${next.serves})
        ON CONFLICT (only_one) DO UPDATE SET version = excluded.version, serves = excluded.serves`;
    }
    await connection.commit();
    return next !== undefined;
  } catch (error) {
    if (!connection.isBroken) await connection.script('ROLLBACK');
    throw error;
  }
}

/** PostgreSQL 15 and later let only the owner of a database create tables in its schema "public". */
async function checkSchema(db: Queries): Promise<void> {
  const found = await db.get<{ path: string; schema: string | null; user: string; may: boolean | null }>`
    SELECT current_setting('search_path') AS path, quote_ident(current_schema()) AS schema,
      quote_ident(current_user) AS user, has_schema_privilege(current_schema(), 'CREATE') AS may`;
  if (found === undefined || found.may === true) return;
  const { path, schema, user } = found;
  throw storeFailed(
    schema === null
      ? `no schema of search_path (${path}) exists: run CREATE SCHEMA, or set search_path`
      : `${user} may not create tables in the schema ${schema}: run GRANT CREATE ON SCHEMA ${schema} TO ${user}`,
  );
}

const VERSION_TABLE = `CREATE TABLE IF NOT EXISTS estuary_schema (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), version bigint NOT NULL, serves bigint NOT NULL)`;

/** @returns undefined: the database is empty @throws EstuaryError for an incompatible version */
async function knownVersion(db: Queries, migrations: readonly Migration[]): Promise<Version | undefined> {
  const { encoding = '' } =
    (await db.get<{ encoding: string }>`SELECT current_setting('server_encoding') AS encoding`) ?? {};
  // Another one has no place for some of the characters that clients send.
  if (encoding !== 'UTF8' && encoding !== 'SQL_ASCII')
    throw failed('STORE_ENCODING', `The database has the encoding ${encoding}. Create one with ENCODING 'UTF8'.`);
  const sql = 'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()';
  const tables = await db.all<{ name: string }>(sql);
  if (!tables.some(({ name }) => name === 'estuary_schema')) {
    if (tables[0] === undefined) {
      await checkSchema(db);
      return undefined;
    }
    throw failed('STORE_FOREIGN', 'Estuary did not create the database', {
      detail: `it has the table ${tables[0].name}`,
    });
  }
  const known = await db.get<Version>`SELECT version, serves FROM estuary_schema`;
  const latest = FIRST_VERSION + migrations.length - 1;
  if (known !== undefined && known.version < FIRST_VERSION) throw tooOld(`its schema has version ${known.version}`);
  if (known !== undefined && known.version > latest && known.serves > latest)
    throw tooNew(
      `its schema has version ${known.version} and supports programs from version ${known.serves} on; this program has ${latest}`,
    );
  return known;
}
