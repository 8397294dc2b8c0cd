/**
 * Lists in the order in which things came, whatever they are filtered by. What a filter finds is read along an index, step by step: where
 * the other filters leave too little of it, the page ends early and its cursor tells where to go on, so that no page costs a look at
 * everything.
 */
import { NEWEST, type Order } from '../../page.ts';
import type { Db } from '../database.ts';

/** Where the rows of a list come from, in one direction. Places are row numbers, exclusive at the beginning and inclusive at the end. */
export interface Source<Row> {
  /** Where a step that begins behind a place ends; undefined: nothing is left behind it. */
  readonly end: (after: number) => number | undefined;
  /** At most `take` rows of a step. @param end undefined: to the end of the list */
  readonly read: (after: number, end: number | undefined, take: number) => readonly Row[];
}

/** A part of a list, both ends within. */
export interface Stretch {
  readonly first: number;
  /** undefined: to the newest. */
  readonly last: number | undefined;
}

/** How much one page may cost. */
export interface SearchLimits {
  /** Entries of an index that are gone through in one step. */
  readonly step: number;
  /** Milliseconds after which no further step begins. */
  readonly patience: number;
}

export const SEARCH_LIMITS: SearchLimits = { step: 2000, patience: 40 };

export interface Walk {
  readonly after: number;
  readonly order: Order;
  readonly take: number;
  readonly patience: number;
  /** What may be left out is not among them, in ascending order; absent: everything. */
  readonly stretches?: readonly Stretch[] | undefined;
}

export interface Walked<Row> {
  readonly rows: readonly Row[];
  /** The last place that was looked at, where the walk ended before the list did. */
  readonly stopped?: number;
}

/** Goes through a source until there are enough rows, or patience is over. At least one step is made. */
export function walk<Row>(source: Source<Row>, options: Walk): Walked<Row> {
  const { order, take, patience } = options;
  const deadline = performance.now() + patience;
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

/** The first stretch, in the walk's direction, of which something lies behind a place. */
function nextStretch(stretches: readonly Stretch[] = EVERYTHING, after: number, order: Order): Stretch | undefined {
  return order === 'asc'
    ? stretches.find(({ last }) => last === undefined || last > after)
    : stretches.findLast(({ first }) => first < after);
}

function begin({ first, last = NEWEST }: Stretch, after: number, order: Order): number {
  return order === 'asc' ? Math.max(after, first - 1) : Math.min(after, last === NEWEST ? NEWEST : last + 1);
}

/** undefined: the stretch reaches the end of the list. */
function farEnd({ first, last }: Stretch, order: Order): number | undefined {
  if (order === 'asc') return last;
  return first <= 1 ? undefined : first;
}

function nearer(a: number | undefined, b: number | undefined, order: Order): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return order === 'asc' ? Math.min(a, b) : Math.max(a, b);
}

/** The parts of a list in which a time can lie, by what is known of its blocks. */
export type ZoneKind = 'certificate.end' | 'certificate.issue' | 'audit.time';

/** Milliseconds, both within; absent: any. */
export interface TimeSpan {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** What finds the stretches of one kind of time. Blocks that were not looked at yet are all at the end, and in any answer. */
export function zoneReads(db: Db, kind: ZoneKind): (span: TimeSpan) => readonly Stretch[] {
  // One statement reads one state: a block that another process closes meanwhile is open in all of it.
  const parts = db.prepare<{ kind: string; from: number; to: number }, { first: number; last: number | null }>(
    `SELECT first, last FROM search_zone WHERE kind = @kind AND high >= @from AND low <= @to
     UNION ALL SELECT coalesce(max(last), 0) + 1, NULL FROM search_zone WHERE kind = @kind ORDER BY first`,
  );
  return ({ from = 0, to = Number.MAX_SAFE_INTEGER }) => {
    const stretches: { first: number; last: number | undefined }[] = [];
    // The block that is being filled may have been looked at in part.
    for (const { first, last } of parts.all({ kind, from, to })) {
      const before = stretches.at(-1);
      if (before?.last !== undefined && before.last + 1 >= first) before.last = last ?? undefined;
      else stretches.push({ first, last: last ?? undefined });
    }
    return stretches;
  };
}
