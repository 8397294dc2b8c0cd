/** The operations' port on SQLite (synchronous). */
import { fold, pageByPosition, readPosition } from '../page.ts';
import type { Database, Dialect, List, Listed, Operation, Parameter, Results, Sql } from '../port.ts';
import { keptBySql, result, runAtOnce } from '../port.ts';
import type { Db } from './database.ts';
import { auditField } from './schema.ts';
import { ListSearch, SEARCH_LIMITS } from './search/list-search.ts';

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

const translated = (text: string): string =>
  text
    .replaceAll(/ FOR (?:SHARE|UPDATE(?: SKIP LOCKED)?)\b/g, '')
    .replaceAll(/= ANY\((@\w+|\?)\)/g, 'IN (SELECT value FROM json_each($1))');

/** SQLite has no list parameters: json_each reads them. */
function binding(sql: string): (parameters: readonly unknown[]) => readonly unknown[] {
  if (!sql.includes('json_each(')) return (parameters) => parameters;
  const lists = [...sql.matchAll(/json_each\(@(\w+)\)/g)].flatMap(([, name]) => name ?? []);
  const bindable = (value: unknown): unknown => {
    if (Array.isArray(value)) return JSON.stringify(value);
    if (lists.length === 0 || typeof value !== 'object' || value === null) return value;
    const named: Record<string, unknown> = { ...value };
    for (const name of lists) named[name] = JSON.stringify(named[name]);
    return named;
  };
  return (parameters) => parameters.map(bindable);
}

export class SqlitePort implements Database {
  readonly dialect = DIALECT;
  readonly #db: Db;
  readonly #prepared;

  constructor(db: Db) {
    this.#db = db;
    this.#prepared = keptBySql((text) => {
      const sql = translated(text);
      return { statement: db.prepare(sql), bound: binding(sql) };
    });
  }

  all<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<readonly Row[]> {
    const { statement, bound } = this.#prepared(sql);
    return result(statement.all(...bound(parameters)) as readonly Row[]);
  }

  get<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<Row | undefined> {
    const { statement, bound } = this.#prepared(sql);
    return result(statement.get(...bound(parameters)) as Row | undefined);
  }

  run(sql: Sql, ...parameters: readonly Parameter[]): Operation<number> {
    const { statement, bound } = this.#prepared(sql);
    return result(statement.run(...bound(parameters)).changes);
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
