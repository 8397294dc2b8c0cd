/** The operations' port on PostgreSQL, which answers later. */
import type { Database, Dialect, Operation, Results, Statement } from '../operations/port.ts';
import { run } from '../operations/port.ts';
import type { Queries } from './queries.ts';

const DIALECT: Dialect = {
  forUpdate: 'FOR UPDATE',
  forShare: 'FOR SHARE',
  // The planner chooses.
  indexedBy: () => '',
  oneOf: (expression, parameter) => `${expression} = ANY(${parameter})`,
  among: (table, _key, selection) => `ctid = ANY(ARRAY(SELECT ctid FROM ${table} ${selection} FOR UPDATE SKIP LOCKED))`,
};

export class PostgresPort implements Database {
  readonly dialect = DIALECT;
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  prepare<Parameters extends readonly unknown[] | object, Row = never>(sql: string): Statement<Parameters, Row> {
    const statement = this.#queries.prepare<Parameters, Row>(sql);
    return {
      all: (...parameters) => answer(() => statement.all(...parameters)),
      get: (...parameters) => answer(() => statement.get(...parameters)),
      run: (...parameters) => answer(() => statement.run(...parameters)),
    };
  }

  together<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
  ): Operation<Results<Operations>> {
    return answer(() => Promise.all(operations.map(run)) as Promise<Results<Operations>>);
  }
}

/** An operation that waits for one answer, with which its runner goes on. */
function* answer<T>(ask: () => Promise<T>): Operation<T> {
  return (yield ask()) as T;
}
