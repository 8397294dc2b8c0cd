import { createHash } from 'node:crypto';
import { BATCH, TABLES, type CopiedTable, type Row, type Value } from './tables.ts';

/** A store that is copied from or to, in one transaction. */
export interface Side {
  /** Some rows behind the first so many, in the table's order. */
  read(table: CopiedTable, offset: number): Promise<readonly Row[]>;
  /** Into an empty table. */
  write(table: CopiedTable, rows: readonly Row[]): Promise<void>;
}

export interface CopiedCount {
  readonly table: string;
  readonly rows: number;
  /** Hex SHA-256 of all rows, in order. */
  readonly hash: string;
}

/** Copies every table. @returns what was read */
export async function copyTables(from: Side, to: Side): Promise<CopiedCount[]> {
  const counts: CopiedCount[] = [];
  for (const table of TABLES) counts.push(await inBatches(table, from, (rows) => to.write(table, rows)));
  return counts;
}

/** What a store holds. */
export async function countTables(side: Side): Promise<CopiedCount[]> {
  const counts: CopiedCount[] = [];
  for (const table of TABLES) counts.push(await inBatches(table, side));
  return counts;
}

async function inBatches(
  table: CopiedTable,
  side: Side,
  use: (rows: readonly Row[]) => Promise<void> = () => Promise.resolve(),
): Promise<CopiedCount> {
  const hash = createHash('sha256');
  for (let offset = 0; ;) {
    const rows = await side.read(table, offset);
    for (const row of rows)
      hash.update(`${JSON.stringify(table.columns.map((name) => comparable(row[name] ?? null)))}\n`);
    if (rows.length > 0) await use(rows);
    offset += rows.length;
    if (rows.length < BATCH) return { table: table.name, rows: offset, hash: hash.digest('hex') };
  }
}

const comparable = (value: Value): unknown =>
  Buffer.isBuffer(value) ? { der: value.toString('base64') } : storable(value);

/** PostgreSQL's texts take every character but U+0000; its picture stands for it there. */
export const storable = (value: Value): Value =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\u2400') : value;
