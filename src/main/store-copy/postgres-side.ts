import type pg from 'pg';
import { fold, storable } from '../../store/page.ts';
import { searchColumns } from '../../store/audit-store.ts';
import { INT8 } from '../../store/postgres/connection.ts';
import type { Side } from './side.ts';
import { BATCH, type CopiedTable, type Row, type Value } from './tables.ts';

/** Columns that only this driver has. */
const MORE: Readonly<Record<string, (row: Row, node: string) => Row>> = {
  certificate: ({ subject, sans }) => ({ subject_folded: fold(subject), sans_folded: fold(namesOf(sans).join('\n')) }),
  audit: ({ line }, node) => ({ node, ...(typeof line === 'string' ? searchColumns(line) : {}) }),
  audit_head: ({ seq }, node) => ({ node, told: seq ?? 0 }),
  statistic: (_, node) => ({ node }),
};

/** A PostgreSQL store with one node's audit chain. @param client in a transaction */
export function postgresSide(client: pg.Client, node: string): Side {
  client.setTypeParser(INT8, Number);
  const kinds = new Map<string, Promise<ReadonlyMap<string, string>>>();
  const kindsIn = (table: string) => {
    const known = kinds.get(table) ?? kindsOf(client, table);
    kinds.set(table, known);
    return known;
  };
  return {
    async count({ name }: CopiedTable) {
      const { rows } = await client.query<{ n: number }>(
        `SELECT count(*) AS n FROM ${source(name)}`,
        CHAINED.has(name) ? [node] : [],
      );
      return rows[0]?.n ?? 0;
    },
    async *read({ name, order, columns }: CopiedTable) {
      await client.query(
        `DECLARE copied NO SCROLL CURSOR FOR
         SELECT ${columns.map(quoted).join(', ')} FROM ${source(name)} ORDER BY ${order.map(ordered).join(', ')}`,
        CHAINED.has(name) ? [node] : [],
      );
      for (;;) {
        const { rows } = await client.query<Record<string, Value>>(`FETCH ${BATCH} FROM copied`);
        if (rows.length > 0) yield rows;
        if (rows.length < BATCH) break;
      }
      await client.query('CLOSE copied');
    },
    async write({ name, columns }: CopiedTable, rows: readonly Row[]) {
      const full = rows.map((row) => ({ ...row, ...MORE[name]?.(row, node) }));
      const all = [...new Set([...columns, ...Object.keys(full[0] ?? {})])];
      const kindOf = await kindsIn(name);
      const arrays = all.map((column, n) => `$${n + 1}::${kindOf.get(column) ?? 'text'}[]`);
      await client.query(
        `INSERT INTO ${name} (${all.map(quoted).join(', ')}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(${arrays.join(', ')})`,
        all.map((column) => full.map((row) => storable((row as Row)[column] ?? null))),
      );
      // Continue the sequence after the copied rows.
      if (columns.includes('position'))
        await client.query(
          `SELECT setval(pg_get_serial_sequence($1, 'position'), (SELECT max(position) FROM ${name}))`,
          [name],
        );
    },
  };
}

/** Tables with separate rows per node. */
const CHAINED = new Set(['audit', 'audit_head', 'statistic']);

function source(name: string): string {
  return CHAINED.has(name) ? `(SELECT * FROM ${name} WHERE node = $1) AS chain` : name;
}

async function kindsOf(client: pg.Client, table: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ column_name: string; data_type: string }>(
    'SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1',
    [table],
  );
  return new Map(rows.map(({ column_name, data_type }) => [column_name, data_type]));
}

function namesOf(sans: Value | undefined): readonly unknown[] {
  const names: unknown = typeof sans === 'string' ? JSON.parse(sans) : [];
  return Array.isArray(names) ? names : [];
}

const quoted = (name: string): string => `"${name}"`;
/** Bytewise order, as in SQLite. */
const ordered = (name: string): string => (NUMBERS.has(name) ? quoted(name) : `${quoted(name)} COLLATE "C"`);
const NUMBERS = new Set(['position', 'seq', 'at', 'hour']);
