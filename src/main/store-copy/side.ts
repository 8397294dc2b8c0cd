import { createHash } from 'node:crypto';
import { storable } from '../../store/page.ts';
import { TABLES, type CopiedTable, type Row, type Value } from './tables.ts';

/** The source or target of a copy, in one transaction. */
export interface Side {
  count(table: CopiedTable): Promise<number>;
  /** All rows in the table's order, in batches and in one pass. Nothing writes meanwhile. */
  read(table: CopiedTable): AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>;
  /** Fills an empty table. */
  write(table: CopiedTable, rows: readonly Row[]): Promise<void>;
}

export interface CopiedCount {
  readonly table: string;
  readonly rows: number;
  /** Hex SHA-256 of all rows, in order. */
  readonly hash: string;
}

/** Receives the number of rows read so far. */
export type OnRows = (rows: number) => void;

/** Copies every table. @returns what was read */
export function copyTables(from: Side, to: Side, onRows?: OnRows): Promise<CopiedCount[]> {
  return ofAllTables(from, onRows, (table, rows) => to.write(table, rows));
}

export function countTables(side: Side, onRows?: OnRows): Promise<CopiedCount[]> {
  return ofAllTables(side, onRows, () => Promise.resolve());
}

async function ofAllTables(
  side: Side,
  onRows: OnRows = () => undefined,
  use: (table: CopiedTable, rows: readonly Row[]) => Promise<void>,
): Promise<CopiedCount[]> {
  const counts: CopiedCount[] = [];
  let before = 0;
  for (const table of TABLES) {
    const hash = createHash('sha256');
    let rows = 0;
    for await (const some of side.read(table)) {
      for (const row of some)
        hash.update(`${JSON.stringify(table.columns.map((name) => comparable(row[name] ?? null)))}\n`);
      await use(table, some);
      rows += some.length;
      onRows(before + rows);
    }
    before += rows;
    counts.push({ table: table.name, rows, hash: hash.digest('hex') });
  }
  return counts;
}

export async function rowsOf(side: Side): Promise<number> {
  let rows = 0;
  for (const table of TABLES) rows += await side.count(table);
  return rows;
}

const comparable = (value: Value): unknown =>
  Buffer.isBuffer(value) ? { der: value.toString('base64') } : storable(value);
