/**
 * Lists in insertion order with any filters. Rows are read along the index of one filter, step by step; if the other
 * filters exclude too many, the page ends early with a cursor, so that no page scans everything.
 */
import { NEWEST, type Order } from '../../page.ts';
import type { Db } from '../database.ts';

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

export interface Walk {
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

/** Ranges of a list that can contain a time, by the known blocks. */
export type ZoneKind = 'certificate.end' | 'certificate.issue' | 'audit.time';

/** Inclusive; absent: any. */
export interface TimeSpan {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Finds the ranges for one kind of time. Blocks that are not indexed yet are all at the end, and always included. */
export function zoneReads(db: Db, kind: ZoneKind): (span: TimeSpan) => readonly Stretch[] {
  // One statement reads one snapshot: a block that another process closes meanwhile counts as open.
  const parts = db.prepare<{ kind: string; from: number; to: number }, { first: number; last: number | null }>(
    `SELECT first, last FROM search_zone WHERE kind = @kind AND high >= @from AND low <= @to
     UNION ALL SELECT coalesce(max(last), 0) + 1, NULL FROM search_zone WHERE kind = @kind ORDER BY first`,
  );
  return ({ from = 0, to = Number.MAX_SAFE_INTEGER }) => {
    const stretches: { first: number; last: number | undefined }[] = [];
    // The current block may be partly indexed.
    for (const { first, last } of parts.all({ kind, from, to })) {
      const before = stretches.at(-1);
      if (before?.last !== undefined && before.last + 1 >= first) before.last = last ?? undefined;
      else stretches.push({ first, last: last ?? undefined });
    }
    return stretches;
  };
}
