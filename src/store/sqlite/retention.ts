/** What leaves the store for its age, a batch at a time. */
import type { ArchivedRange } from '../../audit/event.ts';
import { parseLine } from '../../audit/record.ts';
import { devicePurged, purged } from '../rows/purged.ts';
import { type AuditLine, type OverSince, type OverTokens, PURGED_AT_ONCE } from '../retention-store.ts';
import type { Db } from './database.ts';
import { done, type Outcome } from '../calls/outcome.ts';

/** Tokens that are looked at in one call. */
const PAGE = 2000;

/** Of a token used up the last use counts, where it was noted; older versions did not note it. */
const OVER = `(revoked_at <= @ended OR expires_at <= @ended OR (uses >= max_uses AND
  coalesce((SELECT max(taken_at) FROM otp_use WHERE otp_id = otp.id), expires_at) <= @used))`;

/** The reads. */
export function retentionReads(db: Db) {
  const tokens = db.prepare<
    OverSince & { after: number; limit: number },
    { position: number; id: string; over: number }
  >(`SELECT position, id, ${OVER} IS TRUE AS over FROM otp WHERE position > @after ORDER BY position LIMIT @limit`);
  const lines = db.prepare<[number, number], AuditLine>(
    'SELECT seq, time, line FROM audit WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  return {
    findOverTokens(since: OverSince, after: number): OverTokens {
      const rows = tokens.all({ ...since, after, limit: PAGE });
      return {
        ids: rows.filter(({ over }) => over === 1).map(({ id }) => id),
        next: rows.length < PAGE ? null : (rows.at(-1)?.position ?? null),
      };
    },
    auditLines: (after: number, limit: number): readonly AuditLine[] => lines.all(after, limit),
    lastArchived: newestArchived(db),
  };
}

function newestArchived(db: Db): () => ArchivedRange | undefined {
  const newest = (from: string, where: string) =>
    db.prepare<[], { line: string }>(
      `SELECT line FROM ${from} WHERE ${where} AND type = 'audit.archived' ORDER BY seq DESC LIMIT 1`,
    );
  // The index is filled behind the records (search/index-rows.ts).
  const behind = newest('audit NOT INDEXED', "seq > (SELECT upto FROM search_progress WHERE list = 'audit')");
  const indexed = newest('audit INDEXED BY audit_by_type', 'indexed = 1');
  return () => {
    const row = behind.get() ?? indexed.get();
    return row === undefined ? undefined : parseLine(row.line)?.archived;
  };
}

/** The writes. What goes is audited with its going, but for audit records: of those `audit.archived` has told. */
export function retentionWrites(db: Db) {
  const certificates = db.prepare<{ before: number }>(
    `DELETE FROM certificate WHERE position IN
     (SELECT position FROM certificate AS old WHERE not_after < @before
      AND (revoked_at IS NULL OR NOT EXISTS
        (SELECT 1 FROM crl WHERE crl.ca = old.ca AND number IS NOT NULL AND this_update <= old.not_after))
      AND NOT EXISTS (SELECT 1 FROM request WHERE request.id = old.request_id)
      ORDER BY not_after LIMIT ${PURGED_AT_ONCE})`,
  );
  const token = db.prepare<OverSince & { id: string }>(
    `DELETE FROM otp WHERE id = @id AND ${OVER} AND NOT EXISTS (SELECT 1 FROM request WHERE otp_id = @id)
     AND NOT EXISTS (SELECT 1 FROM reservation WHERE otp_id = @id)`,
  );
  const devices = db.prepare<[number], { key: string; id: string }>(
    `DELETE FROM device WHERE position IN
     (SELECT position FROM device WHERE not_after < ? ORDER BY not_after LIMIT ${PURGED_AT_ONCE}) RETURNING key, id`,
  );
  const forgetDevice = db.prepare<[string]>('DELETE FROM device_event WHERE device_key = ?');
  const records = db.prepare<[number], { seq: number }>(
    `DELETE FROM audit WHERE seq IN
     (SELECT seq FROM audit WHERE seq <= ? ORDER BY seq LIMIT ${PURGED_AT_ONCE}) RETURNING seq`,
  );
  const forgetEvents = db.prepare<[number]>('DELETE FROM device_event WHERE seq <= ?');
  const archived = newestArchived(db);
  return {
    purgeCertificates(before: number): Outcome<number> {
      const { changes } = certificates.run({ before });
      return done(changes, purged('certificates that ended', changes, before));
    },
    purgeTokens(ids: readonly string[], since: OverSince): Outcome<number> {
      let changes = 0;
      for (const id of ids) changes += token.run({ ...since, id }).changes;
      return done(changes, purged('tokens that were over', changes, since.ended));
    },
    purgeDevices(before: number): Outcome<number> {
      const rows = devices.all(before);
      for (const { key } of rows) forgetDevice.run(key);
      return done(
        rows.length,
        rows.map(({ id }) => devicePurged(id, before)),
      );
    },
    noteArchived: (range: ArchivedRange, detail: string): Outcome<undefined> =>
      done(undefined, [{ type: 'audit.archived', outcome: 'success', detail, archived: range }]),
    purgeArchived(): Outcome<number> {
      const last = archived()?.last;
      if (last === undefined) return done(0, []);
      const gone = records.all(last).map(({ seq }) => seq);
      if (gone.length > 0) forgetEvents.run(Math.max(...gone));
      return done(gone.length, []);
    },
  };
}
