/** The rows of every table, for a copy between SQLite and PostgreSQL. */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { searchColumns } from '../store/audit-store.ts';
import { CERTIFICATE_COLUMNS } from '../store/certificate-store.ts';
import { STORED_COLUMNS } from '../store/device-store.ts';
import { RESERVATION_COLUMNS } from '../store/issuance-store.ts';
import { OTP_COLUMNS } from '../store/otp-store.ts';
import { fold, storable } from '../store/page.ts';
import { INT8 } from '../store/postgres/connection.ts';
import { RENEWAL_COLUMNS } from '../store/renewal-store.ts';
import { REQUEST_COLUMNS } from '../store/request-store.ts';
import type { Db } from '../store/sqlite/database.ts';

/** A value of a row in either database. */
type Value = number | string | Buffer | null;
type Row = Readonly<Record<string, Value>>;

interface CopiedTable {
  readonly name: string;
  /** Sort columns, identical in both. */
  readonly order: readonly string[];
  readonly columns: readonly string[];
}

const words = (text: string): string[] => text.split(/,? /);
const inOrder = (name: string, columns: string): CopiedTable => ({
  name,
  order: ['position'],
  columns: ['position', ...words(columns)],
});
const byKey = (name: string, order: string, columns: string): CopiedTable => ({
  name,
  order: words(order),
  columns: words(columns),
});

/** The tables of both drivers, in insertion order. Other tables are rebuilt or not copied: search indexes, administrator sessions, locks. */
export const TABLES: readonly CopiedTable[] = [
  inOrder('otp', OTP_COLUMNS),
  byKey('otp_use', 'request_id', 'request_id otp_id recognition taken_at issued_at'),
  byKey('lookup_key', 'key_check', 'key_check'),
  byKey('failure', 'key at', 'key at'),
  byKey('lockout', 'key', 'key failures locked_until'),
  byKey('reservation', 'request_id', RESERVATION_COLUMNS),
  inOrder('certificate', `${CERTIFICATE_COLUMNS}, issued_at`),
  byKey('authorized_names', 'serial ca', 'serial ca names'),
  inOrder('request', `${REQUEST_COLUMNS}, polled_at, final`),
  inOrder('cmc_message', 'key id transaction_key instance created_at nonce answer'),
  byKey('crl', 'ca', 'ca last_number number this_update next_update der'),
  byKey('crl_change', 'ca', 'ca changes changed_at'),
  inOrder('renewal', RENEWAL_COLUMNS),
  byKey('notification', 'name node', 'name node seq'),
  byKey('acme_account', 'directory thumbprint', 'directory thumbprint url'),
  byKey('presented_intermediate', 'fingerprint', 'fingerprint der used_at'),
  byKey('presented_path', 'leaf', 'leaf intermediates used_at'),
  inOrder('device', STORED_COLUMNS),
  byKey('audit', 'seq', 'seq time type line'),
  byKey('audit_head', 'seq', 'seq hash file_start file_size'),
  // After the records, which have been counted already and partly deleted.
  byKey('statistic', 'hour ca what', 'hour ca what count'),
];

/** Rows per batch. */
export const BATCH = 500;

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

/** Copies every table. @param to undefined: only reads @returns what was read */
export async function copyTables(from: Side, to: Side | undefined, onRows: OnRows): Promise<CopiedCount[]> {
  const counts: CopiedCount[] = [];
  let before = 0;
  for (const table of TABLES) {
    const hash = createHash('sha256');
    let rows = 0;
    for await (const some of from.read(table)) {
      for (const row of some)
        hash.update(`${JSON.stringify(table.columns.map((name) => comparable(row[name] ?? null)))}\n`);
      await to?.write(table, some);
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

/** Columns that only SQLite has. */
const SQLITE_ONLY: Readonly<Record<string, (row: Row) => Row>> = {
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
      const full = rows.map((row) => ({ ...row, ...SQLITE_ONLY[name]?.(row) }));
      const all = [...new Set([...columns, ...Object.keys(SQLITE_ONLY[name]?.({}) ?? {})])];
      const insert = db.prepare<Value[]>(
        `INSERT OR REPLACE INTO ${name} (${all.map(quoted).join(', ')}) VALUES (${all.map(() => '?').join(', ')})`,
      );
      for (const row of full) insert.run(...all.map((column) => (row as Row)[column] ?? null));
      return Promise.resolve();
    },
  };
}

/** Columns that only PostgreSQL has. */
const POSTGRES_ONLY: Readonly<Record<string, (row: Row, node: string) => Row>> = {
  certificate: ({ subject, sans }) => ({ subject_folded: fold(subject), sans_folded: fold(namesOf(sans).join('\n')) }),
  audit: ({ line }, node) => ({ node, ...(typeof line === 'string' ? searchColumns(line) : {}) }),
  audit_head: ({ seq }, node) => ({ node, told: seq ?? 0 }),
  statistic: (_, node) => ({ node }),
};

/** A PostgreSQL store with one node's audit chain. @param client in a transaction */
export function postgresSide(client: pg.Client, node: string): Side {
  client.setTypeParser(INT8, Number);
  let kinds: ReadonlyMap<string, string> | undefined;
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
      const full = rows.map((row) => ({ ...row, ...POSTGRES_ONLY[name]?.(row, node) }));
      const all = [...new Set([...columns, ...Object.keys(full[0] ?? {})])];
      kinds ??= await kindsOf(client);
      const arrays = all.map((column, n) => `$${n + 1}::${kinds?.get(`${name}.${column}`) ?? 'text'}[]`);
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

/** The types of all columns, by `table.column`. */
async function kindsOf(client: pg.Client): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<Readonly<Record<'name' | 'type', string>>>(
    `SELECT table_name || '.' || column_name AS name, data_type AS type
     FROM information_schema.columns WHERE table_schema = current_schema()`,
  );
  return new Map(rows.map(({ name, type }) => [name, type]));
}

function namesOf(sans: Value | undefined): readonly unknown[] {
  const names: unknown = typeof sans === 'string' ? JSON.parse(sans) : [];
  return Array.isArray(names) ? names : [];
}

const quoted = (name: string): string => `"${name}"`;
/** Bytewise order, as in SQLite. */
const ordered = (name: string): string => (NUMBERS.has(name) ? quoted(name) : `${quoted(name)} COLLATE "C"`);
const NUMBERS = new Set(['position', 'seq', 'at', 'hour']);
