/**
 * The interface between the store's operations, written once, and both drivers.
 *
 * An operation is a generator function that runs a statement with `yield*`. SQLite answers at once, so nothing is
 * yielded, and the operation completes in one step. PostgreSQL yields a promise per statement, and the operation
 * resumes with its answer.
 */

import type { Outcome } from './calls/calls.ts';
import type { ListName, Page, PageRequest } from './page.ts';

/** A runnable operation or step. @typeParam T its result */
export type Operation<T> = Iterable<Promise<unknown>, T, unknown>;

/** A write, which also returns its audit events. */
export type Write<T> = Operation<Outcome<T>>;

export type Results<Operations extends readonly Operation<unknown>[]> = {
  -readonly [N in keyof Operations]: Operations[N] extends Operation<infer T> ? T : never;
};

/**
 * A template, whose `${…}` are values and never SQL; or a text with `?` or `@name`. The driver prepares it at its first
 * use and finds it again afterwards, so that a text on a hot path is a constant.
 *
 * It is written for PostgreSQL. SQLite has no row locks (`FOR UPDATE`, `FOR SHARE`), since a transaction has the write
 * lock from its start, and it has no list parameters (`= ANY(@names)`); its driver translates them. PostgreSQL chooses
 * indexes itself, so its driver removes `INDEXED BY`.
 */
export type Sql = TemplateStringsArray | string;

/** A value, or an object with the values of all `@name`. */
export type Parameter = string | number | object | null;

export interface Database {
  readonly dialect: Dialect;
  /** @typeParam Row the columns of the SQL */
  all<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<readonly Row[]>;
  get<Row>(sql: Sql, ...parameters: readonly Parameter[]): Operation<Row | undefined>;
  /** The number of changed rows. */
  run(sql: Sql, ...parameters: readonly Parameter[]): Operation<number>;
  /** Runs independent operations: PostgreSQL gets their statements in one round trip. */
  together<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
  ): Operation<Results<Operations>>;
  /** Lists a table by its `position`. @typeParam Row its columns */
  list<Row extends object>(listed: Listed): List<Row>;
}

export interface Listed {
  readonly name: ListName;
  readonly table: string;
  readonly columns: string;
}

export interface Condition {
  readonly sql: string;
  /** SQLite's index with these rows in list order, if any. */
  readonly index?: string;
}

export type List<Row> = <Item>(
  conditions: readonly Condition[],
  parameters: object,
  page: PageRequest,
  item: (row: Row) => Item,
) => Operation<Page<Item>>;

export function given(all: readonly (Condition & { readonly value: unknown })[]): readonly Condition[] {
  return all.filter(({ value }) => value !== undefined);
}

/** Condition that one of these texts contains `@search`. A list scans its rows for it, as far as its page may take. */
export const someContains = ({ contains }: Dialect, texts: readonly string[], or: string): string =>
  `(${texts.map((text) => contains(text, '@search')).join(' OR ')} OR ${or})`;

/** Condition on the label of a certificate or an audit record. */
export const AT_LABELS = 'coalesce(label, ca) = ANY(@labels)';

/** Further differences between the drivers' SQL. */
export interface Dialect {
  /** The node of a chain of audit records, in `audit_head`. */
  readonly auditNode: string;
  /**
   * Condition of a DELETE on the first rows of a selection, except those locked by another transaction.
   * @param key a unique column, or `rowid`. @param selection what follows `FROM table`: WHERE, ORDER BY, LIMIT, OFFSET
   */
  readonly among: (table: string, key: string, selection: string) => string;
  /** Selects the `line` of the newest audit records of a device. Parameters: `@key`, `@limit`. */
  readonly deviceEvents: string;
  /** Whether a text contains the folded text of a parameter, ignoring case. */
  readonly contains: (expression: string, parameter: string) => string;
  /** A table `attribute` with a row for each `key` and `value` of a JSON object of texts in a column. */
  readonly keysOf: (column: string) => string;
  /** The columns for substring searches in a certificate's names, with their values. */
  readonly nameColumns: Readonly<
    Record<string, (row: { readonly subject: string; readonly sans: readonly string[] }) => string>
  >;
}

/** An INSERT of a row, by the names of its columns: `a, b`. */
export const insertInto = (table: string, columns: string): string =>
  `INSERT INTO ${table} (${columns}) VALUES (${columns.replaceAll(/\w+/g, '@$&')})`;

/** Rows that a call deletes at once, so that others do not wait long. */
export const PURGED_AT_ONCE = 500;

/** Without a limit: SQLite has no OFFSET without LIMIT. */
export const NO_LIMIT = 'LIMIT 9223372036854775807';

/** Statements that a driver keeps. A list has one or two for each set of filters. */
const KEPT = 500;

/** Remembers what a driver makes of the text of a statement. */
export function keptBySql<Made>(make: (text: string) => Made): (sql: Sql) => Made {
  const kept = new Map<Sql, Made>();
  return (sql) => {
    let made = kept.get(sql);
    if (made === undefined) {
      if (kept.size >= KEPT) kept.clear();
      kept.set(sql, (made = make(typeof sql === 'string' ? sql : sql.join('?'))));
    }
    return made;
  };
}

/** An operation with a known result. */
class Result<T> implements Iterable<Promise<unknown>, T, unknown>, Iterator<Promise<unknown>, T, unknown> {
  readonly done = true;
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): this {
    return this;
  }
}

export const result = <T>(value: T): Operation<T> => new Result(value);

export function runAtOnce<T>(operation: Operation<T>): T {
  const step = operation[Symbol.iterator]().next();
  if (step.done !== true) throw new Error('an operation of a synchronous store yields');
  return step.value;
}

export async function run<T>(operation: Operation<T>): Promise<T> {
  const steps = operation[Symbol.iterator]();
  let step = steps.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      answer = await step.value;
    } catch (error) {
      if (steps.throw === undefined) throw error;
      step = steps.throw(error);
      continue;
    }
    step = steps.next(answer);
  }
  return step.value;
}
