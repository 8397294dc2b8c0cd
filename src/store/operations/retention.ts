/** Deletes old data in batches. An event records each deletion. */
import { deviceEvent } from '../../audit/applied-events.ts';
import type { AuditEvent } from '../../audit/event.ts';
import { done } from '../calls/calls.ts';
import type { DeviceRow } from '../device-store.ts';
import { type OverSince, PURGED_AT_ONCE } from '../retention-store.ts';
import { OF_JWT } from './otp.ts';
import type { Database, Reads, Writes } from './port.ts';

/** Tokens checked per call. */
const PAGE = 2000;

/**
 * For a used-up token the last use counts, if recorded. A single-use JWT stays until it expires; otherwise it could be
 * used again.
 */
const OVER = `(expires_at <= @ended OR (NOT ${OF_JWT} AND (revoked_at <= @ended OR (uses >= max_uses AND
  coalesce((SELECT max(taken_at) FROM otp_use WHERE otp_id = otp.id), expires_at) <= @used))))`;

export function retentionReads(db: Database) {
  const tokens = db.prepare<
    OverSince & { after: number; limit: number },
    { position: number; id: string; over: number }
  >(
    `SELECT position, id, CASE WHEN ${OVER} THEN 1 ELSE 0 END AS over FROM otp WHERE position > @after
     ORDER BY position LIMIT @limit`,
  );
  return {
    *findOverTokens(since, after) {
      const rows = yield* tokens.all({ ...since, after, limit: PAGE });
      return {
        ids: rows.filter(({ over }) => over === 1).map(({ id }) => id),
        next: rows.length < PAGE ? null : (rows.at(-1)?.position ?? null),
      };
    },
  } satisfies Reads;
}

export function retentionWrites(db: Database) {
  const { among, oneOf, skipLocked } = db.dialect;
  const certificates = db.prepare<[number]>(
    `DELETE FROM certificate WHERE ${among(
      'certificate AS old',
      'position',
      `WHERE not_after < ?
       AND (revoked_at IS NULL OR NOT EXISTS
         (SELECT 1 FROM crl WHERE crl.ca = old.ca AND number IS NOT NULL AND this_update <= old.not_after))
       AND NOT EXISTS (SELECT 1 FROM request WHERE request.id = old.request_id)
       ORDER BY not_after LIMIT ${PURGED_AT_ONCE}`,
    )}`,
  );
  const lockTokens = db.prepare<[readonly string[]], { id: string }>(
    `SELECT id FROM otp WHERE ${oneOf('id', '?')} ORDER BY position ${skipLocked}`,
  );
  const tokens = db.prepare<OverSince & { ids: readonly string[] }>(
    `DELETE FROM otp WHERE ${oneOf('id', '@ids')} AND ${OVER}
     AND NOT EXISTS (SELECT 1 FROM request WHERE otp_id = otp.id)
     AND NOT EXISTS (SELECT 1 FROM reservation WHERE otp_id = otp.id)`,
  );
  const devices = db.prepare<[number], Pick<DeviceRow, 'key' | 'id' | 'ca'>>(
    `DELETE FROM device WHERE ${among(
      'device',
      'position',
      `WHERE not_after < ? ORDER BY not_after LIMIT ${PURGED_AT_ONCE}`,
    )} RETURNING key, id, ca`,
  );
  return {
    *purgeCertificates(before) {
      const changes = yield* certificates.run(before);
      return done(changes, purged('expired certificates', changes, before));
    },
    *purgeTokens(ids, since) {
      // Lock, then check again: a request may have begun to use one.
      const locked = yield* lockTokens.all(ids);
      const changes = yield* tokens.run({ ...since, ids: locked.map(({ id }) => id) });
      return done(changes, purged('expired or used tokens', changes, since.ended));
    },
    *purgeDevices(before) {
      const rows = yield* devices.all(before);
      return done(
        rows.length,
        rows.map((row) => devicePurged(row, before)),
      );
    },
  } satisfies Writes;
}

const iso = (time: number): string => new Date(time).toISOString();

function purged(what: string, count: number, before: number): readonly AuditEvent[] {
  if (count === 0) return [];
  return [{ type: 'store.purged', outcome: 'success', detail: `${count} ${what} before ${iso(before)}` }];
}

const devicePurged = (row: Pick<DeviceRow, 'key' | 'id' | 'ca'>, before: number): AuditEvent =>
  deviceEvent('device.deleted', row, {}, {}, `its not_after was before ${iso(before)} (retention.devices)`);
