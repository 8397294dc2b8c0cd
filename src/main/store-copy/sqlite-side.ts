import type { Db } from '../../store/sqlite/database.ts';
import { fold } from '../../store/fold.ts';
import type { Side } from './side.ts';
import { BATCH, type CopiedTable, type Row, type Value } from './tables.ts';

/** What a table has here beside what both drivers keep. */
const MORE: Readonly<Record<string, (row: Row) => Row>> = {
  certificate: ({ subject }) => ({ subject_folded: fold(subject) }),
  audit_head: () => ({ id: 1 }),
  // The database is new: nothing of former tokens is in its free pages.
  lookup_key: () => ({ only: 1, cleaned: 1 }),
};

/** A SQLite store. */
export function sqliteSide(db: Db): Side {
  return {
    read({ name, order, columns }: CopiedTable, offset: number) {
      const rows = db
        .prepare<[number, number], Record<string, Value>>(
          `SELECT ${columns.map(quoted).join(', ')} FROM ${name} ORDER BY ${order.map(quoted).join(', ')} LIMIT ? OFFSET ?`,
        )
        .all(BATCH, offset);
      return Promise.resolve(rows);
    },
    write({ name, columns }: CopiedTable, rows: readonly Row[]) {
      for (const row of rows) {
        const more = MORE[name]?.(row) ?? {};
        const all = [...columns, ...Object.keys(more)];
        db.prepare<Value[]>(
          `INSERT OR REPLACE INTO ${name} (${all.map(quoted).join(', ')}) VALUES (${all.map(() => '?').join(', ')})`,
        ).run(...all.map((column) => more[column] ?? row[column] ?? null));
      }
      return Promise.resolve();
    },
  };
}

const quoted = (name: string): string => `"${name}"`;
