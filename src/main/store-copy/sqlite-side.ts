import type { Db } from '../../store/sqlite/database.ts';
import { fold } from '../../store/page.ts';
import type { Side } from './side.ts';
import { BATCH, type CopiedTable, type Row, type Value } from './tables.ts';

/** Columns that only this driver has. */
const MORE: Readonly<Record<string, (row: Row) => Row>> = {
  certificate: ({ subject }) => ({ subject_folded: fold(subject) }),
  audit_head: () => ({ id: 1 }),
  lookup_key: () => ({ only: 1 }),
};

export function sqliteSide(db: Db): Side {
  return {
    count: ({ name }) =>
      Promise.resolve(db.prepare<[], { n: number }>(`SELECT count(*) AS n FROM ${name}`).get()?.n ?? 0),
    *read({ name, order, columns }: CopiedTable) {
      const all = db
        .prepare<[], Row>(
          `SELECT ${columns.map(quoted).join(', ')} FROM ${name} ORDER BY ${order.map(quoted).join(', ')}`,
        )
        .iterate();
      let some: Row[] = [];
      for (const row of all)
        if (some.push(row) === BATCH) {
          yield some;
          some = [];
        }
      if (some.length > 0) yield some;
    },
    write({ name, columns }: CopiedTable, rows: readonly Row[]) {
      const full = rows.map((row) => ({ ...row, ...MORE[name]?.(row) }));
      const all = [...new Set([...columns, ...Object.keys(MORE[name]?.({}) ?? {})])];
      const insert = db.prepare<Value[]>(
        `INSERT OR REPLACE INTO ${name} (${all.map(quoted).join(', ')}) VALUES (${all.map(() => '?').join(', ')})`,
      );
      for (const row of full) insert.run(...all.map((column) => (row as Row)[column] ?? null));
      return Promise.resolve();
    },
  };
}

const quoted = (name: string): string => `"${name}"`;
