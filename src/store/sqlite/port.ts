/** The operations' port on SQLite (synchronous). */
import { fold, pageByPosition, readPosition } from '../page.ts';
import type { Database, Dialect, List, Listed, Operation, Parameter, Results, Sql } from '../port.ts';
import { result, runAtOnce } from '../port.ts';
import type { Db } from './database.ts';
import { auditField } from './schema.ts';
import { ListSearch, SEARCH_LIMITS } from './search/list-search.ts';
import { Statements } from './statements.ts';

const DIALECT: Dialect = {
  auditNode: "''",
  among: (table, key, selection) => `${key} IN (SELECT ${key} FROM ${table} ${selection})`,
  // The newest records are not indexed yet.
  deviceEvents: `SELECT line FROM (
      SELECT * FROM (SELECT seq, line FROM audit NOT INDEXED
        WHERE seq > (SELECT upto FROM search_progress WHERE list = 'audit') AND indexed = 0 AND ${auditField('device_key')} = @key
        ORDER BY seq DESC LIMIT @limit)
      UNION ALL SELECT * FROM (SELECT seq, line FROM audit INDEXED BY audit_by_device_key
        WHERE indexed = 1 AND ${auditField('device_key')} = @key ORDER BY seq DESC LIMIT @limit)
    ) ORDER BY seq DESC LIMIT @limit`,
  contains: (expression, parameter) => `instr(estuary_fold(${expression}), ${parameter}) > 0`,
  keysOf: (column) => `json_each(${column}) AS attribute`,
  nameColumns: { subject_folded: ({ subject }) => fold(subject) },
};

export class SqlitePort implements Database {
  readonly dialect = DIALECT;
  readonly #db: Db;
  readonly #statements: Statements;

  constructor(db: Db) {
    this.#db = db;
    this.#statements = new Statements(db);
  }

  all<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<readonly Row[]> {
    return result(this.#statements.all(sql, ...parameters));
  }

  get<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<Row | undefined> {
    return result(this.#statements.get(sql, ...parameters));
  }

  run(sql: Sql, ...parameters: readonly Parameter[]): Operation<number> {
    return result(this.#statements.run(sql, ...parameters));
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
      return result(pageByPosition(name, search.find(conditions, { ...parameters }, { ...page, after }), page, item));
    };
  }
}
