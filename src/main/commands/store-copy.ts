/** `store copy`: copies a store between drivers, atomically. */
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { readMaterial } from '../../config/material/load-material.ts';
import { loadConfigOnly } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { failed } from '../../errors.ts';
import { migrateDatabase } from '../../store/postgres/migrate.ts';
import { connector } from '../../store/postgres/connection.ts';
import { openWritable } from '../../store/sqlite/database.ts';
import { lockStore } from '../../store/sqlite/service-lock.ts';
import { nodeName, postgresServer } from '../open-store.ts';
import {
  type CopiedCount,
  copyTables,
  type OnRows,
  postgresSide,
  rowsOf,
  type Side,
  sqliteSide,
  TABLES,
} from '../store-copy.ts';
import { EXIT, UsageError, type CommandContext, type Values } from './command.ts';
import type { STORE_COPY } from './options.ts';
import { progress } from './progress.ts';

/** @throws ConfigError; UsageError; EstuaryError such as `STORE_IN_USE`: nothing has changed then */
export async function run(
  { config: file, from, to, path }: Values<typeof STORE_COPY>,
  context: CommandContext,
): Promise<number> {
  if (![from, to].includes('sqlite') || ![from, to].includes('postgres'))
    throw new UsageError(`--from "${from}" --to "${to}": they must be sqlite and postgres, in either order`);
  const { config } = await loadConfigOnly(file, context.env);
  if (config.store.driver !== 'postgres')
    throw new UsageError('--config must have store.driver = "postgres", because it names the PostgreSQL database');
  const sqlite = path === undefined ? config.store.path : resolve(path);
  if ((from === 'sqlite') !== existsSync(sqlite))
    throw new UsageError(from === 'sqlite' ? `--path: ${sqlite} does not exist` : `--path: ${sqlite} already exists`);
  const lock = lockStore(sqlite);
  try {
    const counts = await copied(config, { from: from === 'sqlite' ? 'sqlite' : 'postgres', sqlite, context });
    for (const { table, rows, hash } of counts) context.out(`${table}: ${rows} rows, SHA-256 ${hash}\n`);
  } finally {
    lock.release();
  }
  context.out('the copy is complete: every table has the same rows in both stores\n');
  return EXIT.ok;
}

type Client = Awaited<ReturnType<ReturnType<typeof connector>>>;

interface Direction {
  readonly from: 'sqlite' | 'postgres';
  /** File of the SQLite store. */
  readonly sqlite: string;
  /** Shows the progress. */
  readonly context: CommandContext;
}

async function copied(config: Config, direction: Direction): Promise<CopiedCount[]> {
  const material = await readMaterial(config);
  await migrateDatabase(postgresServer(config, material));
  const client = await connector(postgresServer(config, material))();
  try {
    await client.query('SET statement_timeout = 0');
    await client.query('BEGIN');
    // A node that starts now waits for its name until the copy ends.
    await client.query('LOCK TABLE node IN ACCESS EXCLUSIVE MODE');
    await refuseUsed(client);
    return await copiedBeside(client, nodeName(config), direction);
  } finally {
    await client.end();
  }
}

async function copiedBeside(client: Client, node: string, direction: Direction): Promise<CopiedCount[]> {
  const { from, sqlite, context } = direction;
  const db = openWritable(sqlite);
  let done = false;
  try {
    db.exec('BEGIN IMMEDIATE');
    const sides = { sqlite: sqliteSide(db), postgres: postgresSide(client, node) };
    const source = sides[from];
    const target = sides[from === 'sqlite' ? 'postgres' : 'sqlite'];
    await refuseFilled(target);
    const total = await rowsOf(source);
    const read = await shown(context, 'copying', total, (onRows) => copyTables(source, target, onRows));
    verify(read, await shown(context, 'checking the copy', total, (onRows) => copyTables(target, undefined, onRows)));
    await client.query('COMMIT');
    db.exec('COMMIT');
    done = true;
    return read;
  } finally {
    if (db.inTransaction) db.exec('ROLLBACK');
    db.close();
    // Remove the partial copy.
    if (!done && from === 'postgres')
      for (const end of ['', '-wal', '-shm']) rmSync(`${sqlite}${end}`, { force: true });
  }
}

/** Runs work on all rows and shows its progress. */
async function shown<T>(
  context: CommandContext,
  what: string,
  total: number,
  work: (onRows: OnRows) => Promise<T>,
): Promise<T> {
  const bar = progress(context, { what, unit: 'rows', total });
  return work((rows) => bar.update(rows)).finally(bar.end);
}

async function refuseFilled(target: Side): Promise<void> {
  for (const table of TABLES)
    if (table.name !== 'audit_head' && (await target.count(table)) > 0)
      throw failed('STORE_NOT_EMPTY', 'the target store is not empty', {
        detail: `it has rows in ${table.name}`,
      });
}

async function refuseUsed(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string; host: string }>(
    "SELECT name, host FROM node WHERE heartbeat > clock_timestamp() - interval '30 seconds'",
  );
  const [node] = rows;
  if (node !== undefined)
    throw failed('STORE_IN_USE', 'the store is in use', { detail: `the node "${node.name}" runs on ${node.host}` });
}

function verify(read: readonly CopiedCount[], written: readonly CopiedCount[]): void {
  for (const [n, { table, rows, hash }] of read.entries()) {
    const other = written[n];
    if (other?.rows !== rows || other.hash !== hash)
      throw failed('STORE_FAILED', 'the store failed', {
        detail: `${table}: ${rows} rows with SHA-256 ${hash} were read, but the copy has ${other?.rows ?? 0} with ${other?.hash ?? ''}. Nothing was kept.`,
      });
  }
}
