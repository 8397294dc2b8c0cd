/**
 * Lists in insertion order with any filters. Rows are read along the index of one filter, step by step; if the other
 * filters exclude too many, the page ends early with a cursor, so that no page scans everything.
 */
import { NEWEST, type Order, type PageRequest } from '../../page.ts';
import type { Condition } from '../../port.ts';
import type { Db } from '../database.ts';
import { Statements } from '../statements.ts';

/**
 * A source of rows in one direction. Positions are row numbers, exclusive at the beginning and inclusive at the end.
 */
export interface Source<Row> {
  /** The end of the step after a position; undefined: nothing follows. */
  readonly end: (after: number) => number | undefined;
  /** At most `take` rows of a step. @param end undefined: to the end of the list */
  readonly read: (after: number, end: number | undefined, take: number) => readonly Row[];
}

/** A range of a list, inclusive. */
export interface Stretch {
  readonly first: number;
  /** undefined: to the newest. */
  readonly last: number | undefined;
}

/** Limits the cost of one page. */
export interface SearchLimits {
  /** Index entries per step. */
  readonly step: number;
  /** Milliseconds after which no further step begins. */
  readonly maxWait: number;
}

export const SEARCH_LIMITS: SearchLimits = { step: 2000, maxWait: 40 };

interface Walk {
  readonly after: number;
  readonly order: Order;
  readonly take: number;
  readonly maxWait: number;
  /** Ranges in ascending order that contain all matches; default: everything. */
  readonly stretches?: readonly Stretch[] | undefined;
}

export interface Walked<Row> {
  readonly rows: readonly Row[];
  /** The last position, if the walk ended before the list did. */
  readonly stopped?: number;
}

/** Reads a source until there are enough rows or the time is over; makes at least one step. */
export function walk<Row>(source: Source<Row>, options: Walk): Walked<Row> {
  const { order, take, maxWait } = options;
  const deadline = performance.now() + maxWait;
  const rows: Row[] = [];
  let at = options.after;
  for (;;) {
    const stretch = nextStretch(options.stretches, at, order);
    if (stretch === undefined) return { rows };
    at = begin(stretch, at, order);
    const end = nearer(source.end(at), farEnd(stretch, order), order);
    rows.push(...source.read(at, end, take - rows.length));
    if (rows.length >= take || end === undefined) return { rows };
    at = end;
    if (performance.now() >= deadline) return { rows, stopped: at };
  }
}

const EVERYTHING: readonly Stretch[] = [{ first: 0, last: undefined }];

/** The first range, in the walk's direction, with anything after a position. */
function nextStretch(stretches: readonly Stretch[] = EVERYTHING, after: number, order: Order): Stretch | undefined {
  return order === 'asc'
    ? stretches.find(({ last }) => last === undefined || last > after)
    : stretches.findLast(({ first }) => first < after);
}

function begin({ first, last = NEWEST }: Stretch, after: number, order: Order): number {
  return order === 'asc' ? Math.max(after, first - 1) : Math.min(after, last === NEWEST ? NEWEST : last + 1);
}

/** undefined: the range reaches the end of the list. */
function farEnd({ first, last }: Stretch, order: Order): number | undefined {
  if (order === 'asc') return last;
  return first <= 1 ? undefined : first;
}

function nearer(a: number | undefined, b: number | undefined, order: Order): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return order === 'asc' ? Math.min(a, b) : Math.max(a, b);
}

export interface Listed {
  readonly table: string;
  /** The row number that orders its list. */
  readonly place: string;
  readonly columns: string;
}

export type Parameters = Readonly<Record<string, unknown>>;

/** SQL operators behind a position and up to an end, and the end of the list, in the direction of an order. */
export const directed = (order: Order) =>
  order === 'asc'
    ? ({ behind: '>', until: '<=', far: NEWEST } as const)
    : ({ behind: '<', until: '>=', far: 0 } as const);

/** Finds rows of one table, in order. @typeParam Row with the position of its list */
export class ListSearch<Row> {
  readonly limits: SearchLimits;
  readonly #listed: Listed;
  readonly #statements: Statements;

  constructor(db: Db, listed: Listed, limits: SearchLimits) {
    this.#statements = new Statements(db);
    this.#listed = listed;
    this.limits = limits;
  }

  /** Rows after a position: one more than the page, to detect the end. */
  find(
    asked: readonly Condition[],
    parameters: Parameters,
    page: PageRequest & { readonly after: number },
  ): Walked<Row> {
    const { order = 'asc', after, limit } = page;
    const source = this.along(this.narrowest(asked, parameters), asked, parameters, order);
    return walk(source, { after, order, take: limit + 1, maxWait: this.limits.maxWait });
  }

  /**
   * The rows that match all conditions, in order.
   * @param along the condition whose index has its entries in list order; undefined: the table itself
   */
  along(along: Condition | undefined, asked: readonly Condition[], parameters: Parameters, order: Order): Source<Row> {
    const { place } = this.#listed;
    const { behind, until, far } = directed(order);
    const from = this.#from(along);
    const others = asked.flatMap((condition) => (condition === along ? [] : [condition.sql]));
    const indexed = [...(along === undefined ? [] : [along.sql]), `${place} ${behind} @after`];
    const read = `SELECT ${this.#columns(parameters)} FROM ${from}
      WHERE ${[...indexed, `${place} ${until} @end`, ...others].join(' AND ')} ORDER BY ${place} ${order} LIMIT @take`;
    const nth = `SELECT ${place} AS place FROM ${from} WHERE ${indexed.join(' AND ')}
      ORDER BY ${place} ${order} LIMIT 1 OFFSET ${this.limits.step - 1}`;
    return {
      // Without further conditions, every scanned entry matches.
      end: (after) =>
        others.length === 0 ? undefined : this.#statements.get<{ place: number }>(nth, { ...parameters, after })?.place,
      read: (after, end, take) => this.#statements.all(read, { ...parameters, after, end: end ?? far, take }),
    };
  }

  /** The few rows whose numbers a query returns. */
  among(query: string, asked: readonly Condition[], parameters: Parameters, order: Order): Source<Row> {
    const { table, place } = this.#listed;
    const where = [
      `${place} IN (${query})`,
      `${place} ${directed(order).behind} @after`,
      ...asked.map(({ sql }) => sql),
    ];
    const sql = `SELECT ${this.#columns(parameters)} FROM ${table}
      WHERE ${where.join(' AND ')} ORDER BY ${place} ${order} LIMIT @take`;
    return {
      end: () => undefined,
      read: (after, _end, take) => this.#statements.all(sql, { ...parameters, after, take }),
    };
  }

  /** Whether an index has so few entries that one step reads all. */
  isNarrow(along: Condition | undefined, parameters: Parameters): boolean {
    return along !== undefined && this.#count(along, parameters) < this.limits.step;
  }

  /** The condition whose index has the fewest entries, counted up to one step; among longer ones the first. */
  narrowest(asked: readonly Condition[], parameters: Parameters): Condition | undefined {
    const candidates = asked.filter(({ index }) => index !== undefined);
    if (candidates.length < 2) return candidates[0];
    const counts = candidates.map((condition) => this.#count(condition, parameters));
    return candidates[counts.indexOf(Math.min(...counts))];
  }

  #count(along: Condition, parameters: Parameters): number {
    const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM ${this.#from(along)} WHERE ${along.sql} LIMIT ${this.limits.step})`;
    return this.#statements.get<{ n: number }>(sql, parameters)?.n ?? 0;
  }

  #columns({ counts }: Parameters): string {
    const { place, columns } = this.#listed;
    return counts === true ? place : `${place}, ${columns}`;
  }

  #from(along: Condition | undefined): string {
    return `${this.#listed.table} ${along?.index === undefined ? 'NOT INDEXED' : `INDEXED BY ${along.index}`}`;
  }
}

/** Ranges of a list that can contain a time, by the known blocks. */
type ZoneKind = 'certificate.end' | 'certificate.issue' | 'audit.time';

/** Inclusive; absent: any. */
interface TimeSpan {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Finds the ranges for one kind of time. Blocks that are not indexed yet are all at the end, and always included. */
export function zoneReads(db: Db, kind: ZoneKind): (span: TimeSpan) => readonly Stretch[] {
  const statements = new Statements(db);
  return ({ from = 0, to = Number.MAX_SAFE_INTEGER }) => {
    // One statement reads one snapshot: a block that another process closes meanwhile counts as open.
    const parts = statements.all<{ first: number; last: number | null }>`SELECT first, last FROM search_zone
        WHERE kind = ${kind} AND high >= ${from} AND low <= ${to}
      UNION ALL SELECT coalesce(max(last), 0) + 1, NULL FROM search_zone WHERE kind = ${kind} ORDER BY first`;
    const stretches: { first: number; last: number | undefined }[] = [];
    // The current block may be partly indexed.
    for (const { first, last } of parts) {
      const before = stretches.at(-1);
      if (before?.last !== undefined && before.last + 1 >= first) before.last = last ?? undefined;
      else stretches.push({ first, last: last ?? undefined });
    }
    return stretches;
  };
}
