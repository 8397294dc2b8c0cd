/** Converts SQL with named or positional parameters, as in the other driver, for PostgreSQL. */
import { hash } from 'node:crypto';
import { storable } from '../page.ts';
import { keptBySql, type Parameter, type Sql } from '../port.ts';

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
interface Connected {
  query(statement: Prepared): Promise<Answer>;
}

/** Statements of one connection or a pool. */
export class Queries {
  readonly #connected: Connected;
  readonly #translated = keptBySql(translated);

  constructor(connected: Connected) {
    this.#connected = connected;
  }

  async all<Row>(sql: Sql, ...parameters: readonly Parameter[]): Promise<readonly Row[]> {
    return (await this.#query(sql, parameters)).rows as readonly Row[];
  }

  async get<Row>(sql: Sql, ...parameters: readonly Parameter[]): Promise<Row | undefined> {
    return (await this.#query(sql, parameters)).rows[0] as Row | undefined;
  }

  /** The number of changed rows. */
  async run(sql: Sql, ...parameters: readonly Parameter[]): Promise<number> {
    return (await this.#query(sql, parameters)).rowCount ?? 0;
  }

  #query(sql: Sql, parameters: readonly Parameter[]): Promise<Answer> {
    const { name, text, names, count } = this.#translated(sql);
    const [first] = parameters;
    const values =
      names.length === 0
        ? parameters.slice(0, count)
        : names.map((parameter): unknown => Reflect.get(Object(first) as object, parameter));
    return this.#connected.query({ name, text, values: values.map((value) => storable(value ?? null)) });
  }
}

/** @returns also the named parameters in order, and the number of positional ones */
function translated(sql: string) {
  const names: string[] = [];
  let count = 0;
  const text = sql.replaceAll(/ INDEXED BY \w+/g, '').replaceAll(/@([a-z_0-9]+)|\?/g, (_, name: string | undefined) => {
    if (name === undefined) return `$${++count}`;
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { name: `estuary_${hash('sha256', text, 'hex').slice(0, 24)}`, text, names, count };
}
