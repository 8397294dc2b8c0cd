/** How `store copy` reads a store and puts it into another one. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BATCH, copyTables, rowsOf, sqliteSide, TABLES } from '../../src/main/store-copy.ts';
import { type Db, openWritable } from '../../src/store/sqlite/database.ts';
import { T0, temporaryPaths } from '../store/support.ts';

const HOUR = 3_600_000;

/** A store that lacks the first of its audit records: they have left it, and are counted still. */
function filled(path: string): Db {
  const db = openWritable(path);
  onTestFinished(() => void db.close());
  const failure = db.prepare('INSERT INTO failure (key, at) VALUES (?, ?)');
  // Many of one key and time, around where one batch ends and the next begins.
  for (let n = 0; n < 3 * BATCH; n++) failure.run('address:192.0.2.1', T0 + Math.floor(n / 20));
  const record = db.prepare('INSERT INTO audit (seq, time, type, line) VALUES (?, ?, ?, ?)');
  for (let seq = 1; seq <= 2 * BATCH + 1; seq++)
    record.run(seq, T0 + seq * 60_000, 'certificate.issued', JSON.stringify({ ca: 'devices', seq }));
  db.exec(`DELETE FROM audit WHERE time < ${T0 + 5 * HOUR}`);
  return db;
}

test('every row once, in batches, however many have the same key, and the counters as they were', async () => {
  const { folder } = temporaryPaths();
  const source = filled(join(folder, 'source.db'));
  const target = openWritable(join(folder, 'target.db'));
  onTestFinished(() => void target.close());
  const [from, to] = [sqliteSide(source), sqliteSide(target)];
  const failures = TABLES.filter(({ name }) => name === 'failure');
  for (const table of failures)
    for await (const rows of from.read(table)) expect(rows.length).toBeLessThanOrEqual(BATCH);

  const told: number[] = [];
  const copied = await copyTables(from, to, (rows) => void told.push(rows));
  expect(copied.find(({ table }) => table === 'failure')?.rows).toBe(3 * BATCH);
  expect(told.length).toBeGreaterThan(3);
  expect(told).toEqual(told.toSorted((a, b) => a - b));
  expect(told.at(-1)).toBe(await rowsOf(from));
  expect(await copyTables(to, undefined, () => undefined)).toEqual(copied);
  const counters = 'SELECT hour, ca, what, count FROM statistic';
  expect(target.prepare(counters).all()).toEqual(source.prepare(counters).all());
});
