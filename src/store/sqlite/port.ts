/** The operations' port on SQLite (synchronous). */
import { fold, pageByPosition, readPosition } from '../page.ts';
import type { Database, Dialect, List, Listed, Operation, Results, Statement } from '../port.ts';
import { result, runAtOnce } from '../port.ts';
import type { Db } from './database.ts';
import { ListSearch, SEARCH_LIMITS } from './search/list-search.ts';

const DIALECT: Dialect = {
  // The transaction has the write lock from its start.
  forUpdate: '',
  forShare: '',
  auditNode: "''",
  skipLocked: '',
  indexedBy: (index) => `INDEXED BY ${index}`,
  oneOf: (expression, parameter) => `${expression} IN (SELECT value FROM json_each(${parameter}))`,
  among: (table, key, selection) => `${key} IN (SELECT ${key} FROM ${table} ${selection})`,
  // The newest records are not indexed yet.
  deviceEvents: `SELECT line FROM (
      SELECT * FROM (SELECT seq, line FROM audit NOT INDEXED
        WHERE seq > (SELECT upto FROM search_progress WHERE list = 'audit') AND indexed = 0 AND device_key = @key
        ORDER BY seq DESC LIMIT @limit)
      UNION ALL SELECT * FROM (SELECT seq, line FROM audit INDEXED BY audit_by_device
        WHERE indexed = 1 AND device_key = @key ORDER BY seq DESC LIMIT @limit)
    ) ORDER BY seq DESC LIMIT @limit`,
  contains: (expression, parameter) => `instr(estuary_fold(${expression}), ${parameter}) > 0`,
  keysOf: (column) => `json_each(${column}) AS attribute`,
  nameColumns: { subject_folded: ({ subject }) => fold(subject) },
};

/** SQLite has no list parameters: json_each reads them. */
const withLists = (parameters: readonly unknown[]): readonly unknown[] => parameters.map(bindable);

function bindable(value: unknown): unknown {
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]: [string, unknown]) => [name, Array.isArray(one) ? bindable(one) : one]),
  );
}

const unchanged = (parameters: readonly unknown[]): readonly unknown[] => parameters;

export class SqlitePort implements Database {
  readonly dialect = DIALECT;
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  prepare<Parameters extends readonly unknown[] | object, Row = never>(sql: string): Statement<Parameters, Row> {
    const statement = this.#db.prepare<unknown[], Row>(sql);
    const bound = sql.includes('json_each(') ? withLists : unchanged;
    return {
      all: (...parameters) => result(statement.all(...bound(parameters))),
      get: (...parameters) => result(statement.get(...bound(parameters))),
      run: (...parameters) => result(statement.run(...bound(parameters)).changes),
    };
  }

  together<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
  ): Operation<Results<Operations>> {
    return result(operations.map(runAtOnce) as Results<Operations>);
  }

  list<Row extends object>({ name, table, columns }: Listed): List<Row> {
    const listed = { table, place: 'position', columns };
    const search = new ListSearch<Row & { position: number }>(this.#db, listed, SEARCH_LIMITS);
    return (conditions, parameters, page, item) => {
      const after = readPosition(name, page);
      return result(
        pageByPosition(name, search.find(conditions, { ...parameters }, { ...page, after }), page.limit, item),
      );
    };
  }
}
