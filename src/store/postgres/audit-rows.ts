import type { Anchor, AuditEvent, AuditRecord } from '../../audit/event.ts';
import type { AuditFilter } from '../audit-store.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { Page } from '../page.ts';
import { toRecord } from '../rows/audit.ts';
import { given, listing, partPattern } from './listing.ts';
import type { Queries } from './queries.ts';

/** The reads of the audit log: the records of all nodes. */
export function auditReads(db: Queries) {
  const list = listing<{ line: string }>(db, { name: 'audit', table: 'audit', columns: 'line' });
  return {
    listAudit(filter: AuditFilter): Promise<Page<AuditRecord>> {
      const { node, request_id, serial, type, ca, subject, since, until } = filter;
      const asked = given([
        { value: node, sql: 'node = @node' },
        { value: request_id, sql: 'request_id = @request_id' },
        { value: serial, sql: 'serial = @serial' },
        { value: type, sql: 'type = @type' },
        { value: ca, sql: 'ca = @ca' },
        { value: since, sql: 'time >= @since' },
        { value: until, sql: 'time <= @until' },
        { value: subject, sql: 'subject LIKE @subject' },
      ]);
      const parameters = { ...filter, ...(subject === undefined ? {} : { subject: partPattern(subject) }) };
      return list(asked, parameters, filter, toRecord);
    },
  };
}

/** The writes that consist of audit records alone. */
export function auditWrites(db: Queries, node: string) {
  // What only tells of other chains is no news to them: else two nodes at rest would go on telling each other.
  const others = db.prepare<[string], Anchor & { readonly told: number }>(
    'SELECT node, seq, hash, told FROM audit_head WHERE node <> ?',
  );
  return {
    async anchorAudit(known: readonly Anchor[]): Promise<Outcome<readonly Anchor[]>> {
      const noted = new Map(known.map((anchor) => [anchor.node, anchor.seq]));
      const moved = (await others.all(node)).filter((other) => other.told > (noted.get(other.node) ?? 0));
      if (moved.length === 0) return undone([]);
      const anchors = moved.map(({ node: name, seq, hash }): Anchor => ({ node: name, seq, hash }));
      const detail = `the ends of ${anchors.length} other chains`;
      return done(anchors, [{ type: 'audit.anchored', outcome: 'success', detail, anchors }]);
    },
    audit: (events: readonly AuditEvent[]): Promise<Outcome<undefined>> => Promise.resolve(done(undefined, events)),
    // Every transaction looks whether the file was renamed away; this one only comes in time.
    reopenAuditFile: (): Promise<Outcome<undefined>> => Promise.resolve(done(undefined, [])),
  };
}
