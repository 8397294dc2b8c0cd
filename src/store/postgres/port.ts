/** The operations' port on PostgreSQL (asynchronous). */
import { fold, type Page, pageByPosition, readPosition, type Total } from '../page.ts';
import {
  certificateConditions,
  type CertificateFilter,
  LISTED_COLUMNS,
  type ListedCertificate,
  type StoredCertificate,
  toCertificateRow,
} from '../certificate-store.ts';
import { slowRead } from '../operation.ts';
import type { Condition, Database, Dialect, List, Listed, Operation, Parameter, Results, Sql } from '../port.ts';
import { run } from '../port.ts';
import type { Queries } from './queries.ts';

const DIALECT: Dialect = {
  auditNode: 'node',
  among: (table, _key, selection) => `ctid = ANY(ARRAY(SELECT ctid FROM ${table} ${selection} FOR UPDATE SKIP LOCKED))`,
  deviceEvents: 'SELECT line FROM audit WHERE device_key = @key ORDER BY position DESC LIMIT @limit',
  contains: (expression, parameter) => `strpos(lower(${expression}), ${parameter}) > 0`,
  keysOf: (column) => `json_each_text(${column}::json) AS attribute (key, value)`,
  nameColumns: {
    subject_folded: ({ subject }) => fold(subject),
    sans_folded: ({ sans }) => fold(sans.join('\n')),
  },
};

export class PostgresPort implements Database {
  readonly dialect = DIALECT;
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  all<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<readonly Row[]> {
    return answer(() => this.#queries.all(sql, ...parameters));
  }

  get<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<Row | undefined> {
    return answer(() => this.#queries.get(sql, ...parameters));
  }

  run(sql: Sql, ...parameters: readonly Parameter[]): Operation<number> {
    return answer(() => this.#queries.run(sql, ...parameters));
  }

  together<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
  ): Operation<Results<Operations>> {
    return answer(() => Promise.all(operations.map(run)) as Promise<Results<Operations>>);
  }

  /** The planner has an index for each filter. */
  list<Row extends object>({ name, table, columns }: Listed): List<Row> {
    const [all, get] = [this.all.bind(this), this.get.bind(this)];
    return function* (conditions, parameters, page, item) {
      if (page.counts) {
        const total = yield* countRows(get, table, conditions, { ...page, ...parameters });
        return { items: [], next_cursor: null, total };
      }
      const { order = 'asc', limit } = page;
      const after = readPosition(name, page);
      const where = [`position ${order === 'asc' ? '>' : '<'} @after`, ...conditions.map(({ sql }) => sql)];
      const rows = yield* all<Row & { position: number }>(
        `SELECT position, ${columns} FROM ${table} WHERE ${where.join(' AND ')} ORDER BY position ${order} LIMIT @take`,
        { ...parameters, after, take: limit + 1 },
      );
      return pageByPosition(name, { rows }, page, item);
    };
  }
}

/** Positions that one statement counts in. */
const COUNTED_AT_ONCE = 100_000;
/** Milliseconds after which no further statement begins. */
const COUNTED_FOR = 100;

/** Counts range by range, so that no filter costs a scan of the whole table. */
function* countRows(
  get: Database['get'],
  table: string,
  conditions: readonly Condition[],
  parameters: { readonly limit: number },
): Operation<Total> {
  const deadline = performance.now() + COUNTED_FOR;
  const where = ['position > @after', 'position <= @upto', ...conditions.map(({ sql }) => sql)].join(' AND ');
  const sql = `SELECT (SELECT count(*) FROM (SELECT FROM ${table} WHERE ${where} LIMIT @take) AS found) AS n,
    (SELECT min(position) FROM ${table} WHERE position > @upto) AS next`;
  for (let [count, after] = [0, 0]; ;) {
    const upto = after + COUNTED_AT_ONCE;
    const take = parameters.limit + 1 - count;
    const found = yield* get<{ n: number; next: number | null }>(sql, { ...parameters, after, upto, take });
    count += found?.n ?? 0;
    if (count > parameters.limit) return { count: parameters.limit, exact: false };
    if (found?.next == null) return { count, exact: true };
    if (performance.now() >= deadline) return { count, exact: false };
    after = found.next - 1;
  }
}

/** An operation that waits for one response, with which its runner resumes it. */
function* answer<T>(ask: () => Promise<T>): Operation<T> {
  return (yield ask()) as T;
}

/** A LIKE pattern for a substring, ignoring case. */
export const partPattern = (part: string): string => `%${fold(part).replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;

/** Trigram indexes find substrings of names. */
export function certificateList(db: Database) {
  const list = db.list<Omit<StoredCertificate, 'der'>>({
    name: 'certificate',
    table: 'certificate',
    columns: LISTED_COLUMNS,
  });
  return {
    listCertificates: slowRead((filter: CertificateFilter, now: number): Operation<Page<ListedCertificate>> => {
      const { conditions, parameters } = certificateConditions(filter, now, {
        subject: 'subject_folded LIKE @subject',
        // Each name is a line, so a substring with a line feed matches none.
        san: filter.san?.includes('\n') === true ? 'false' : 'sans_folded LIKE @san',
        part: partPattern,
      });
      return list(conditions, parameters, filter, toCertificateRow);
    }),
  };
}
