/** Statements for lists: along an index with the rows of one value in order, plus further conditions. */
import type { Condition } from '../../port.ts';
import { NEWEST, type Order, type PageRequest } from '../../page.ts';
import type { Db } from '../database.ts';
import { SEARCH_LIMITS, type SearchLimits, type Source, type Stretch, walk, type Walked } from './walk.ts';

/** A list with filters on whole values, each with an index. */

/** Finds rows of one table, in order. @typeParam Row with the position of its list */
export class ListSearch<Row> {
  readonly table: TableSearch<Row>;
  readonly limits: SearchLimits;

  constructor(db: Db, listed: Listed, limits: SearchLimits = SEARCH_LIMITS) {
    this.table = new TableSearch(db, listed);
    this.limits = limits;
  }

  /**
   * Rows after a position: one more than the page, to detect the end.
   * @param stretches ranges of the list to search; default: all
   */
  find(
    asked: readonly Condition[],
    parameters: Parameters,
    page: PageRequest & { readonly after: number },
    stretches?: readonly Stretch[],
  ): Walked<Row> {
    const { order = 'asc', after, limit } = page;
    const source = this.along(this.narrowest(asked, parameters), asked, parameters, order);
    return walk(source, { after, order, take: limit + 1, maxWait: this.limits.maxWait, stretches });
  }

  along(index: Index, asked: readonly Condition[], parameters: Parameters, order: Order): Source<Row> {
    const others = asked.filter(({ sql }) => sql !== index.where).map(({ sql }) => sql);
    return this.table.along(index, others, parameters, { order, step: this.limits.step });
  }

  /** Whether an index has so few entries that one step reads all. */
  isNarrow(index: Index, parameters: Parameters): boolean {
    return index.name !== undefined && this.table.count(index, parameters, this.limits.step) < this.limits.step;
  }

  /** The index with the fewest entries, counted up to one step; among longer ones the first. */
  narrowest(asked: readonly Condition[], parameters: Parameters): Index {
    const candidates = asked.flatMap(({ sql, index }) => (index === undefined ? [] : [{ name: index, where: sql }]));
    const [first, ...more] = candidates;
    if (first === undefined || more.length === 0) return first ?? { name: undefined };
    const counts = candidates.map((index) => this.table.count(index, parameters, this.limits.step));
    return candidates[counts.indexOf(Math.min(...counts))] ?? first;
  }
}

export interface Listed {
  readonly table: string;
  /** The row number that orders its list. */
  readonly place: string;
  readonly columns: string;
}

/** An index whose entries of one value are in list order. */
export interface Index {
  /** Its name; undefined: the table itself. */
  readonly name: string | undefined;
  /** The condition on its entries; absent: none. */
  readonly where?: string;
}

export type Parameters = Readonly<Record<string, unknown>>;

/** Cached prepared statements: a list has one or two per set of filters. */
const KEPT = 256;

export class TableSearch<Row> {
  readonly #db: Db;
  readonly #listed: Listed;
  readonly #statements = new Map<string, ReturnType<Db['prepare']>>();

  constructor(db: Db, listed: Listed) {
    this.#db = db;
    this.#listed = listed;
  }

  count({ name, where }: Index, parameters: Parameters, upTo: number): number {
    const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM ${this.#from(name)} WHERE ${where ?? '1'} LIMIT ${upTo})`;
    return (this.#prepare(sql).get(parameters) as { n: number }).n;
  }

  /** The rows of an index condition that match all others, in order. @param step entries scanned at once */
  along(
    index: Index,
    conditions: readonly string[],
    parameters: Parameters,
    { order, step }: { readonly order: Order; readonly step: number },
  ): Source<Row> {
    const { place } = this.#listed;
    const from = this.#from(index.name);
    const [behind, until] = order === 'asc' ? ['>', '<='] : ['<', '>='];
    const indexed = [...(index.where === undefined ? [] : [index.where]), `${place} ${behind} @after`];
    const far = order === 'asc' ? NEWEST : 0;
    const read = `SELECT ${place}, ${this.#listed.columns} FROM ${from}
      WHERE ${[...indexed, `${place} ${until} @end`, ...conditions].join(' AND ')} ORDER BY ${place} ${order} LIMIT @take`;
    const nth = `SELECT ${place} AS place FROM ${from} WHERE ${indexed.join(' AND ')} ORDER BY ${place} ${order} LIMIT 1 OFFSET ${step - 1}`;
    return {
      // Without further conditions, every scanned entry matches.
      end: (after) =>
        conditions.length === 0
          ? undefined
          : (this.#prepare(nth).get({ ...parameters, after }) as { place: number } | undefined)?.place,
      read: (after, end, take) =>
        this.#prepare(read).all({ ...parameters, after, end: end ?? far, take }) as readonly Row[],
    };
  }

  /** The few rows whose numbers a query returns. */
  among(query: string, conditions: readonly string[], parameters: Parameters, order: Order): Source<Row> {
    const { table, place, columns } = this.#listed;
    const behind = `${place} ${order === 'asc' ? '>' : '<'} @after`;
    const sql = `SELECT ${place}, ${columns} FROM ${table}
      WHERE ${[`${place} IN (${query})`, behind, ...conditions].join(' AND ')} ORDER BY ${place} ${order} LIMIT @take`;
    return {
      end: () => undefined,
      read: (after, _end, take) => this.#prepare(sql).all({ ...parameters, after, take }) as readonly Row[],
    };
  }

  #from(index: string | undefined): string {
    return `${this.#listed.table} ${index === undefined ? 'NOT INDEXED' : `INDEXED BY ${index}`}`;
  }

  #prepare(sql: string): ReturnType<Db['prepare']> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (this.#statements.size >= KEPT) this.#statements.clear();
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
