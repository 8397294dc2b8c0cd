/** What leaves the store for its age, a batch at a time. */
import type { ArchivedRange } from '../../audit/event.ts';
import { parseLine } from '../../audit/record.ts';
import { done, type Outcome } from '../calls/outcome.ts';
import { type AuditLine, type OverSince, type OverTokens, PURGED_AT_ONCE } from '../retention-store.ts';
import { devicePurged, purged } from '../rows/purged.ts';
import type { Queries } from './queries.ts';

/** Tokens that are looked at in one call. */
const PAGE = 2000;

/** Of a token used up the last use counts, where it was noted; older versions did not note it. */
const OVER = `(coalesce(revoked_at <= @ended, false) OR expires_at <= @ended OR (uses >= max_uses AND
  coalesce((SELECT max(taken_at) FROM otp_use WHERE otp_id = otp.id), expires_at) <= @used))`;

/** The reads. @param node whose records are archived here: its own */
export function retentionReads(db: Queries, node: string) {
  const tokens = db.prepare<
    OverSince & { after: number; limit: number },
    { position: number; id: string; over: boolean }
  >(`SELECT position, id, ${OVER} AS over FROM otp WHERE position > @after ORDER BY position LIMIT @limit`);
  const lines = db.prepare<[string, number, number], AuditLine>(
    'SELECT seq, time, line FROM audit WHERE node = ? AND seq > ? ORDER BY seq LIMIT ?',
  );
  return {
    async findOverTokens(since: OverSince, after: number): Promise<OverTokens> {
      const rows = await tokens.all({ ...since, after, limit: PAGE });
      return {
        ids: rows.filter(({ over }) => over).map(({ id }) => id),
        next: rows.length < PAGE ? null : (rows.at(-1)?.position ?? null),
      };
    },
    auditLines: (after: number, limit: number): Promise<readonly AuditLine[]> => lines.all(node, after, limit),
    lastArchived: newestArchived(db, node),
  };
}

function newestArchived(db: Queries, node: string): () => Promise<ArchivedRange | undefined> {
  const newest = db.prepare<[string], { line: string }>(
    "SELECT line FROM audit WHERE type = 'audit.archived' AND node = ? ORDER BY position DESC LIMIT 1",
  );
  return async () => {
    const row = await newest.get(node);
    return row === undefined ? undefined : parseLine(row.line)?.archived;
  };
}

/** The writes. What goes is audited with its going, but for audit records: of those `audit.archived` has told. */
export function retentionWrites(db: Queries, node: string) {
  const certificates = db.prepare<{ before: number }>(
    `DELETE FROM certificate WHERE position = ANY(ARRAY(
     SELECT position FROM certificate AS old WHERE not_after < @before
      AND (revoked_at IS NULL OR NOT EXISTS
        (SELECT 1 FROM crl WHERE crl.ca = old.ca AND number IS NOT NULL AND this_update <= old.not_after))
      AND NOT EXISTS (SELECT 1 FROM request WHERE request.id = old.request_id)
      ORDER BY not_after LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED))`,
  );
  const lockTokens = db.prepare<[readonly string[]], { id: string }>(
    'SELECT id FROM otp WHERE id = ANY(?) ORDER BY position FOR UPDATE SKIP LOCKED',
  );
  const tokens = db.prepare<OverSince & { ids: readonly string[] }>(
    `DELETE FROM otp WHERE id = ANY(@ids) AND ${OVER} AND NOT EXISTS (SELECT 1 FROM request WHERE otp_id = otp.id)
     AND NOT EXISTS (SELECT 1 FROM reservation WHERE otp_id = otp.id)`,
  );
  const devices = db.prepare<[number], { key: string; id: string }>(
    `DELETE FROM device WHERE position = ANY(ARRAY(SELECT position FROM device WHERE not_after < ? ORDER BY not_after
     LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED)) RETURNING key, id`,
  );
  const forgetDevices = db.prepare<[readonly string[]]>('DELETE FROM device_event WHERE device_key = ANY(?)');
  const records = db.prepare<[string, string, number], { position: number }>(
    `DELETE FROM audit WHERE node = ? AND seq = ANY(ARRAY(SELECT seq FROM audit WHERE node = ? AND seq <= ?
     ORDER BY seq LIMIT ${PURGED_AT_ONCE})) RETURNING position`,
  );
  const forgetEvents = db.prepare<[readonly number[]]>('DELETE FROM device_event WHERE position = ANY(?)');
  const archived = newestArchived(db, node);
  return {
    async purgeCertificates(before: number): Promise<Outcome<number>> {
      const changes = await certificates.run({ before });
      return done(changes, purged('certificates that ended', changes, before));
    },
    async purgeTokens(ids: readonly string[], since: OverSince): Promise<Outcome<number>> {
      // First they are ours, then it is seen whether nobody has begun to use them.
      const ours = await lockTokens.all(ids);
      const changes = await tokens.run({ ...since, ids: ours.map(({ id }) => id) });
      return done(changes, purged('tokens that were over', changes, since.ended));
    },
    async purgeDevices(before: number): Promise<Outcome<number>> {
      const rows = await devices.all(before);
      await forgetDevices.run(rows.map(({ key }) => key));
      return done(
        rows.length,
        rows.map(({ id }) => devicePurged(id, before)),
      );
    },
    noteArchived: (range: ArchivedRange, detail: string): Promise<Outcome<undefined>> =>
      Promise.resolve(done(undefined, [{ type: 'audit.archived', outcome: 'success', detail, archived: range }])),
    async purgeArchived(): Promise<Outcome<number>> {
      const last = (await archived())?.last;
      if (last === undefined) return done(0, []);
      const gone = await records.all(node, node, last);
      await forgetEvents.run(gone.map(({ position }) => position));
      return done(gone.length, []);
    },
  };
}
