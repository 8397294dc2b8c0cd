/** The parts of a list in which a time can lie, by what is known of its blocks. */
import type { Db } from '../database.ts';
import type { Stretch } from './walk.ts';

export type ZoneKind = 'certificate.end' | 'certificate.issue' | 'audit.time';

/** Milliseconds, both within; absent: any. */
export interface TimeSpan {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** What finds the stretches of one kind of time. Blocks that were not looked at yet are all at the end, and in any answer. */
export function zoneReads(db: Db, kind: ZoneKind): (span: TimeSpan) => readonly Stretch[] {
  const blocks = db.prepare<[string, number, number], { first: number; last: number }>(
    'SELECT first, last FROM search_zone WHERE kind = ? AND high >= ? AND low <= ? ORDER BY first',
  );
  const known = db.prepare<[string], { last: number | null }>(
    'SELECT max(last) AS last FROM search_zone WHERE kind = ?',
  );
  return ({ from = 0, to = Number.MAX_SAFE_INTEGER }) => {
    const stretches: { first: number; last: number | undefined }[] = [];
    const all = blocks.all(kind, from, to);
    // The block that is being filled may have been looked at in part.
    const open = (known.get(kind)?.last ?? 0) + 1;
    for (const { first, last } of [...all, { first: open, last: undefined }]) {
      const before = stretches.at(-1);
      if (before?.last !== undefined && before.last + 1 >= first) before.last = last;
      else stretches.push({ first, last });
    }
    return stretches;
  };
}
