/** Converts SQL with named or positional parameters, as in the other driver, for PostgreSQL. */
import { hash } from 'node:crypto';
import { storable } from '../page.ts';
import type { Arguments } from '../port.ts';

/** A statement that PostgreSQL prepares under its name in each connection that uses it. */
export interface Prepared {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface Answer {
  readonly rows: readonly object[];
  readonly rowCount: number | null;
}

/** Runs a statement on the connection in question. */
export type Execute = (statement: Prepared) => Promise<Answer>;

/** @typeParam Parameters a tuple for `?`, an object for `@name`. @typeParam Row the columns of the SQL */
export interface Statement<Parameters, Row> {
  all(...parameters: Arguments<Parameters>): Promise<readonly Row[]>;
  get(...parameters: Arguments<Parameters>): Promise<Row | undefined>;
  /** The number of changed rows. */
  run(...parameters: Arguments<Parameters>): Promise<number>;
}

/** Statements of one connection or a pool. */
export class Queries {
  readonly #execute: Execute;

  constructor(execute: Execute) {
    this.#execute = execute;
  }

  prepare<Parameters extends readonly unknown[] | object, Row = never>(sql: string): Statement<Parameters, Row> {
    const { text, names, count } = translated(sql);
    const name = `estuary_${hash('sha256', text, 'hex').slice(0, 24)}`;
    const execute = (parameters: Arguments<Parameters>): Promise<Answer> =>
      this.#execute({ name, text, values: valuesOf({ names, count }, parameters) });
    return {
      async all(...parameters) {
        const { rows } = await execute(parameters);
        return rows as readonly Row[];
      },
      async get(...parameters) {
        const { rows } = await execute(parameters);
        return rows[0] as Row | undefined;
      },
      async run(...parameters) {
        const { rowCount } = await execute(parameters);
        return rowCount ?? 0;
      },
    };
  }
}

interface Translated {
  readonly text: string;
  /** Named parameters in order. */
  readonly names: readonly string[];
  /** Number of positional parameters. */
  readonly count: number;
}

function translated(sql: string): Translated {
  const names: string[] = [];
  let count = 0;
  const text = sql.replaceAll(/@([a-z_0-9]+)|\?/g, (_, name: string | undefined) => {
    if (name === undefined) return `$${++count}`;
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { text, names, count };
}

function valuesOf({ names, count }: Omit<Translated, 'text'>, parameters: readonly unknown[]): readonly unknown[] {
  const [first] = parameters;
  const values =
    names.length === 0
      ? parameters.slice(0, count)
      : names.map((name): unknown => Reflect.get(Object(first) as object, name));
  return values.map((value) => storable(value ?? null));
}
