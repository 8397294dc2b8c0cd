/** The audit log in PostgreSQL: one chain per node. */
import type { Anchor, ArchivedRange, AuditRecord } from '../../audit/event.ts';
import { parseLine } from '../../audit/record.ts';
import { done, undone } from '../calls/calls.ts';
import { type AuditFilter, type AuditLine, toRecord } from '../audit-store.ts';
import { EVERYTHING, slowRead, write } from '../operation.ts';
import { AT_LABELS, type Database, given, type Operation, PURGED_AT_ONCE, type Write } from '../port.ts';
import { NEWEST, type Page } from '../page.ts';
import { partPattern } from './port.ts';

/** Records that a search by time may scan before it looks up where to begin. */
const PASSED = 10_000;

/**
 * The position where the records of a time begin or end, from the index of times, so that a search by position does not
 * scan all records before or after.
 * @param far the position to use if there are few of them
 */
const edge = (end: 'min' | 'max', isOutside: string, isInside: string, far: number): string =>
  // "+ 0" keeps the planner from using the positions here, too.
  `CASE WHEN (SELECT count(*) FROM (SELECT FROM audit WHERE ${isOutside} LIMIT ${PASSED}) AS passed) < ${PASSED}
     THEN ${far} ELSE (SELECT ${end}(position + 0) FROM audit WHERE ${isInside}) END`;
const SINCE = `position >= ${edge('min', 'time < @since', 'time >= @since', 0)}`;
const UNTIL = `position <= ${edge('max', 'time > @until', 'time <= @until', NEWEST)}`;

/** @param node whose records are archived here */
export function auditReads(db: Database, node: string) {
  const list = db.list<{ line: string }>({ name: 'audit', table: 'audit', columns: 'line' });
  return {
    listAudit: slowRead((filter: AuditFilter): Operation<Page<AuditRecord>> => {
      const { request_id, serial, type, ca, subject, since, until, labels, order = 'asc' } = filter;
      const isNarrow = (request_id ?? serial) !== undefined;
      const conditions = given([
        { value: filter.node, sql: 'node = @node' },
        { value: request_id, sql: 'request_id = @request_id' },
        { value: serial, sql: 'serial = @serial' },
        { value: type, sql: 'type = @type' },
        { value: ca, sql: 'ca = @ca' },
        { value: since, sql: order === 'asc' && !isNarrow ? `time >= @since AND ${SINCE}` : 'time >= @since' },
        { value: until, sql: order === 'desc' && !isNarrow ? `time <= @until AND ${UNTIL}` : 'time <= @until' },
        { value: subject, sql: 'subject LIKE @subject' },
        { value: labels, sql: AT_LABELS },
      ]);
      const parameters = { ...filter, ...(subject === undefined ? {} : { subject: partPattern(subject) }) };
      return list(conditions, parameters, filter, toRecord);
    }),
    auditLines: slowRead(
      (after: number, limit: number, of: string = node) =>
        db.all<AuditLine>`SELECT seq, time, line FROM audit WHERE node = ${of} AND seq > ${after} ORDER BY seq LIMIT ${limit}`,
    ),
    lastArchived: slowRead(() => lastArchived(db, node)),
  };
}

function* lastArchived(db: Database, node: string): Operation<ArchivedRange | undefined> {
  const row = yield* db.get<{ line: string }>`SELECT line FROM audit WHERE type = 'audit.archived' AND node = ${node}
    ORDER BY position DESC LIMIT 1`;
  return row === undefined ? undefined : parseLine(row.line)?.archived;
}

export function auditWrites(db: Database, node: string) {
  return {
    anchorAudit: write(EVERYTHING, function* (known: readonly Anchor[]): Write<readonly Anchor[]> {
      const noted = new Map(known.map((anchor) => [anchor.node, anchor.seq]));
      const others = yield* db.all<Anchor & { readonly told: number }>`SELECT node, seq, hash, told FROM audit_head
        WHERE node <> ${node}`;
      // Records that concern only other chains are skipped: otherwise two idle nodes would record each other's records
      // forever.
      const moved = others.filter((other) => other.told > (noted.get(other.node) ?? 0));
      if (moved.length === 0) return undone([]);
      const anchors = moved.map(({ node: name, seq, hash }): Anchor => ({ node: name, seq, hash }));
      const detail = `the ends of ${anchors.length} other chains`;
      return done(anchors, [{ type: 'audit.anchored', outcome: 'success', detail, anchors }]);
    }),
    purgeArchived: write(EVERYTHING, function* (): Write<number> {
      const last = (yield* lastArchived(db, node))?.last;
      if (last === undefined) return done(0, []);
      const changes = yield* db.run`DELETE FROM audit WHERE node = ${node} AND seq = ANY(ARRAY(
        SELECT seq FROM audit WHERE node = ${node} AND seq <= ${last} ORDER BY seq LIMIT ${PURGED_AT_ONCE}))`;
      return done(changes, []);
    }),
  };
}
