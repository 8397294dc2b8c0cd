/**
 * What the operations of the store are written against, once for both drivers.
 *
 * An operation is a generator function. It runs a statement with `yield*`. SQLite answers at once, so that nothing is yielded, and the
 * operation runs to its end in one step. PostgreSQL yields a promise for each statement, and the operation goes on with its answer.
 */

import type { CertificateRow } from '../certificate-store.ts';
import type { ListName, Page, PageRequest } from '../page.ts';

/** What an operation, or a step of it, does when it is run. @typeParam T its result */
export type Operation<T> = Iterable<Promise<unknown>, T, unknown>;

type Arguments<Parameters> = Parameters extends readonly unknown[] ? Parameters : [Parameters];

/** @typeParam Parameters a tuple for `?`, an object for `@name`. @typeParam Row what comes back, which the SQL says */
export interface Statement<Parameters, Row> {
  all(...parameters: Arguments<Parameters>): Operation<readonly Row[]>;
  get(...parameters: Arguments<Parameters>): Operation<Row | undefined>;
  /** The number of changed rows. */
  run(...parameters: Arguments<Parameters>): Operation<number>;
}

/** The results of several operations. */
export type Results<Operations extends readonly Operation<unknown>[]> = {
  -readonly [N in keyof Operations]: Operations[N] extends Operation<infer T> ? T : never;
};

export interface Database {
  readonly dialect: Dialect;
  prepare<Parameters extends readonly unknown[] | object, Row = never>(sql: string): Statement<Parameters, Row>;
  /** Runs operations that do not depend on each other: PostgreSQL gets their statements in one round trip. */
  together<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
  ): Operation<Results<Operations>>;
  /** Lists a table by its `position`. @typeParam Row as the columns have it */
  list<Row extends object>(listed: Listed): List<Row>;
}

export interface Listed {
  readonly name: ListName;
  readonly table: string;
  readonly columns: string;
}

/** What a filter requires of a row. */
export interface Condition {
  readonly sql: string;
  /** The index of SQLite that has these rows in the list's order, if there is one. */
  readonly index?: string;
}

export type List<Row> = <Item>(
  conditions: readonly Condition[],
  parameters: object,
  page: PageRequest,
  item: (row: Row) => Item,
) => Operation<Page<Item>>;

/** The conditions of the filters that are given. */
export function given(all: readonly (Condition & { readonly value: unknown })[]): readonly Condition[] {
  return all.filter(({ value }) => value !== undefined);
}

/** The condition that a row belongs to one of these labels, with its parameters; absent: no condition. */
export function atLabels(expression: string, labels: readonly string[] | undefined) {
  const names = labels?.map((_, n) => `label_${n}`) ?? [];
  // Nothing equals NULL.
  const values = names.length === 0 ? 'NULL' : names.map((name) => `@${name}`).join(', ');
  return {
    conditions: labels === undefined ? [] : [{ sql: `${expression} IN (${values})` }],
    parameters: Object.fromEntries(names.map((name, n) => [name, labels?.[n]])),
  };
}

/** The label of a certificate or an audit record. */
export const LABEL = 'coalesce(label, ca)';

/** The differences between the drivers' SQL. */
export interface Dialect {
  /** Follows a SELECT of rows that are changed later in the transaction. Empty where there is one writer. */
  readonly forUpdate: string;
  /** Follows a SELECT of rows that must stay as they are until the end of the transaction. */
  readonly forShare: string;
  /** Follows a SELECT like {@link forUpdate}, which leaves out rows that another transaction has locked. */
  readonly skipLocked: string;
  /** Names the index of a query where the planner needs it. */
  readonly indexedBy: (index: string) => string;
  /** Whether an expression has one of the values of a parameter, which is a list: `@names` or `?`. */
  readonly oneOf: (expression: string, parameter: string) => string;
  /**
   * The condition of a DELETE on the first rows of a selection, without those that another transaction has locked.
   *
   * @param key a unique column, or `rowid`. @param selection what follows `FROM table`: WHERE, ORDER BY, LIMIT, OFFSET
   */
  readonly among: (table: string, key: string, selection: string) => string;
  /** The column that orders audit records. */
  readonly auditPlace: string;
  /** A table `attribute` with a row for each `key` of a JSON object in a column. */
  readonly keysOf: (column: string) => string;
  /** The columns by which parts of a certificate's names are found, with their values. */
  readonly nameColumns: Readonly<Record<string, (row: Pick<CertificateRow, 'subject' | 'sans'>) => string>>;
}

/** Without a limit: SQLite has no OFFSET without LIMIT. */
export const NO_LIMIT = 'LIMIT 9223372036854775807';

/** An operation that has its result already. */
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

/** Runs an operation of a driver that answers at once. */
export function runAtOnce<T>(operation: Operation<T>): T {
  const step = operation[Symbol.iterator]().next();
  if (step.done !== true) throw new Error('an operation of a synchronous store yields');
  return step.value;
}

/** Runs an operation of a driver that answers later. */
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

type Operations = Readonly<Record<string, (...args: never[]) => Operation<unknown>>>;

/** A table of operations as functions that return at once. */
export type AtOnce<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends (...args: infer Args) => Operation<infer T>
    ? (...args: Args) => T
    : never;
};

/** A table of operations as functions that return promises. */
export type Later<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends (...args: infer Args) => Operation<infer T>
    ? (...args: Args) => Promise<T>
    : never;
};

export const atOnce = <Table extends Operations>(table: Table): AtOnce<Table> =>
  mapped(table, runAtOnce) as AtOnce<Table>;

export const later = <Table extends Operations>(table: Table): Later<Table> => mapped(table, run) as Later<Table>;

function mapped(table: Operations, runner: (operation: Operation<unknown>) => unknown): object {
  const calls = Object.entries(table).map(
    ([name, operation]) => [name, (...args: never[]) => runner(operation(...args))] as const,
  );
  return Object.fromEntries(calls);
}
