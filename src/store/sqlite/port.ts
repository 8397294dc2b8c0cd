/** The operations' port on SQLite, which answers at once. */
import type { Database, Dialect, Operation, Results, Statement } from '../operations/port.ts';
import { result, runAtOnce } from '../operations/port.ts';
import type { Db } from './database.ts';

const DIALECT: Dialect = {
  // The transaction has the write lock from its start.
  forUpdate: '',
  forShare: '',
  indexedBy: (index) => `INDEXED BY ${index}`,
  oneOf: (expression, parameter) => `${expression} IN (SELECT value FROM json_each(${parameter}))`,
  among: (table, key, selection) => `${key} IN (SELECT ${key} FROM ${table} ${selection})`,
};

/** SQLite has no lists: json_each reads them. */
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
}
