/** Deletes old data in batches. An event records each deletion. */
import { deviceEvent } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { ArchiveStore } from './audit-store.ts';
import { done, type Events } from './calls/calls.ts';
import { DEVICE_ID, type DeviceRow } from './device-store.ts';
import { OF_JWT } from './otp-store.ts';
import { type Calls, EVERYTHING, slowRead, write } from './operation.ts';
import { type Database, type Operation, PURGED_AT_ONCE, type Write } from './port.ts';

/** A token that expired or was revoked by one time, or was used up by another. */
export interface OverSince {
  readonly ended: number;
  readonly used: number;
}

export interface OverTokens {
  readonly ids: readonly string[];
  /** Position of the next page; null: none. */
  readonly next: number | null;
}

/** Tokens checked per call. */
const PAGE = 2000;

/**
 * For a used-up token the last use counts, if recorded. A single-use JWT stays until it expires; otherwise it could be
 * used again.
 */
const OVER = `(expires_at <= @ended OR (NOT ${OF_JWT} AND (revoked_at <= @ended OR (uses >= max_uses AND
  coalesce((SELECT max(taken_at) FROM otp_use WHERE otp_id = otp.id), expires_at) <= @used))))`;

const PAGE_OF_TOKENS = `SELECT position, id, CASE WHEN ${OVER} THEN 1 ELSE 0 END AS over FROM otp WHERE position > @after
  ORDER BY position LIMIT ${PAGE}`;

export function retentionReads(db: Database) {
  return {
    /** A page of dead tokens. @param after 0, or `next` of the previous page */
    findOverTokens: slowRead(function* (since: OverSince, after: number): Operation<OverTokens> {
      const rows = yield* db.all<{ position: number; id: string; over: number }>(PAGE_OF_TOKENS, { ...since, after });
      return {
        ids: rows.filter(({ over }) => over === 1).map(({ id }) => id),
        next: rows.length < PAGE ? null : (rows.at(-1)?.position ?? null),
      };
    }),
  };
}

const DELETE_TOKENS = `DELETE FROM otp WHERE id = ANY(@ids) AND ${OVER}
  AND NOT EXISTS (SELECT 1 FROM request WHERE otp_id = otp.id)
  AND NOT EXISTS (SELECT 1 FROM reservation WHERE otp_id = otp.id)`;

export function retentionWrites(db: Database) {
  const { among } = db.dialect;
  const deleteCertificates = `DELETE FROM certificate WHERE ${among(
    'certificate AS old',
    'position',
    `WHERE not_after < ?
     AND (revoked_at IS NULL OR NOT EXISTS
       (SELECT 1 FROM crl WHERE crl.ca = old.ca AND number IS NOT NULL AND this_update <= old.not_after))
     AND NOT EXISTS (SELECT 1 FROM request WHERE request.id = old.request_id)
     AND NOT EXISTS (SELECT 1 FROM rescue WHERE rescue.serial = old.serial AND rescue.ca = old.ca AND until > ?)
     ORDER BY not_after LIMIT ${PURGED_AT_ONCE}`,
  )}`;
  const over = `WHERE not_after < ? ORDER BY not_after LIMIT ${PURGED_AT_ONCE}`;
  const deleteDevices = `DELETE FROM device WHERE ${among('device', 'position', over)} RETURNING key, ${DEVICE_ID} AS id, ca`;
  return {
    /**
     * Certificates that expired before a time. A revoked one stays until its CA's latest CRL is younger than its expiry
     * (RFC 5280 §3.3), the certificate of a queued request until that is gone, and one with a pass until its end.
     */
    purgeCertificates: write(EVERYTHING, function* (before: number, now: number): Write<number> {
      const changes = yield* db.run(deleteCertificates, before, now);
      return done(changes, purged('expired certificates', changes, before));
    }),
    /** Deletes those that are still dead and that no request or reservation refers to. */
    purgeTokens: write(EVERYTHING, function* (ids: readonly string[], since: OverSince): Write<number> {
      // Lock, then check again: a request may have begun to use one.
      const locked = yield* db.all<{ id: string }>`SELECT id FROM otp WHERE id = ANY(${ids})
        ORDER BY position FOR UPDATE SKIP LOCKED`;
      const changes = yield* db.run(DELETE_TOKENS, { ...since, ids: locked.map(({ id }) => id) });
      return done(changes, purged('expired or used tokens', changes, since.ended));
    }),
    /** Registered devices whose `not_after` was before a time. */
    purgeDevices: write(EVERYTHING, function* (before: number): Write<number> {
      const rows = yield* db.all<PurgedDevice>(deleteDevices, before);
      return done(
        rows.length,
        rows.map((row) => devicePurged(row, before)),
      );
    }),
  };
}

const iso = (time: number): string => new Date(time).toISOString();

function purged(what: string, count: number, before: number): Events {
  if (count === 0) return [];
  return [{ type: 'store.purged', outcome: 'success', detail: `${count} ${what} before ${iso(before)}` }];
}

type PurgedDevice = Pick<DeviceRow, 'key' | 'id' | 'ca'>;

const devicePurged = (row: PurgedDevice, before: number): AuditEvent =>
  deviceEvent('device.deleted', row, {}, {}, `its not_after was before ${iso(before)} (retention.devices)`);

/**
 * Deletion of old data. Every call processes one batch, so that others do not wait long, and returns the number; less
 * than {@link PURGED_AT_ONCE} means that all are done.
 */
export type RetentionStore = ArchiveStore &
  Calls<ReturnType<typeof retentionReads> & ReturnType<typeof retentionWrites>>;
