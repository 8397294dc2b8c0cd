import { keptBySql, type Parameter, type Sql } from '../port.ts';
import type { Db } from './database.ts';

const translated = (text: string): string =>
  withoutRepeats(
    text
      .replaceAll(/ FOR (?:SHARE|UPDATE(?: SKIP LOCKED)?)\b/g, '')
      .replaceAll(/= ANY\((@\w+|\?)\)/g, 'IN (SELECT value FROM json_each($1))'),
  );

/** SQLite 3.54 prepares a statement with `= ?` and ORDER BY, min() or max() again each time that it runs, but not with `= +?`. */
const withoutRepeats = (sql: string): string =>
  /\bORDER BY\b|\b(?:min|max)\(/.test(sql) ? sql.replaceAll(/ = (?=@|\?)/g, ' = +') : sql;

/** SQLite has no list parameters: json_each reads them. */
function withLists(value: unknown): unknown {
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withLists(inner)]));
}

type Rows<Row> = readonly Row[];
type Found<Row> = Row | undefined;

/** The statements of one connection. */
export class Statements {
  readonly #prepared;

  constructor(db: Db) {
    this.#prepared = keptBySql((text) => {
      const sql = translated(text);
      const hasLists = sql.includes('json_each(');
      return {
        statement: db.prepare(sql),
        bound: (parameters: readonly Parameter[]) => (hasLists ? parameters.map(withLists) : parameters),
      };
    });
  }

  all<Row>(sql: Sql, ...parameters: readonly Parameter[]): Rows<Row> {
    const { statement, bound } = this.#prepared(sql);
    return statement.all(...bound(parameters)) as Rows<Row>;
  }

  get<Row>(sql: Sql, ...parameters: readonly Parameter[]): Found<Row> {
    const { statement, bound } = this.#prepared(sql);
    return statement.get(...bound(parameters)) as Found<Row>;
  }

  /** The number of changed rows. */
  run(sql: Sql, ...parameters: readonly Parameter[]): number {
    const { statement, bound } = this.#prepared(sql);
    return statement.run(...bound(parameters)).changes;
  }
}
