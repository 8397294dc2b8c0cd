import type { AuditEvent } from '../../audit/event.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { Page } from '../page.ts';
import type { Decision, RequestFilter, RequestLifetimes, RequestRow } from '../request-store.ts';
import { ANSWERED, ENDED, goes, inStatus, mayGo } from '../request-state.ts';
import { PURGED_AT_ONCE } from '../retention-store.ts';
import {
  type Expired,
  expiredEvent,
  REQUEST_COLUMNS,
  type StoredRequest,
  toRequestRow,
  toStoredRequest,
} from '../rows/request.ts';
import { mayIssueTo } from './device-admission.ts';
import { given, listing } from './listing.ts';
import { clearFailures } from './lockout.ts';
import { giveBackOtpUse, takeOtpUse } from './otp-uses.ts';
import type { Queries } from './queries.ts';

/** Requests that expire at once, so that the transactions that wait meanwhile do not wait long. */
const EXPIRED_AT_ONCE = 500;

/** A failed or expired request is over: the same one may be queued anew, unless it failed for good. */
export function findNewest(db: Queries): (recognition: string) => Promise<RequestRow | undefined> {
  const newest = db.prepare<[string], StoredRequest>(
    `SELECT ${REQUEST_COLUMNS} FROM request WHERE recognition = ?
     AND (${inStatus(ANSWERED)} OR (status = 'failed' AND final = 1)) ORDER BY position DESC LIMIT 1`,
  );
  return async (recognition) => {
    const stored = await newest.get(recognition);
    return stored === undefined ? undefined : toRequestRow(stored);
  };
}

/** The reads of queued requests. */
export function requestReads(db: Queries) {
  const byId = db.prepare<[string], StoredRequest>(`SELECT ${REQUEST_COLUMNS} FROM request WHERE id = ?`);
  const list = listing<StoredRequest>(db, { name: 'request', table: 'request', columns: REQUEST_COLUMNS });
  return {
    findRequest: findNewest(db),
    async getRequest(id: string): Promise<RequestRow | undefined> {
      const stored = await byId.get(id);
      return stored === undefined ? undefined : toRequestRow(stored);
    },
    listRequests(filter: RequestFilter): Promise<Page<RequestRow>> {
      const { device, requester, status, ca } = filter;
      const asked = given([
        { value: device, sql: 'device = @device' },
        { value: requester, sql: 'requester = @requester' },
        { value: status, sql: 'status = @status' },
        { value: ca, sql: 'ca = @ca' },
      ]);
      return list(asked, filter, filter, toRequestRow);
    },
  };
}

export function insertRequest(db: Queries): (row: RequestRow) => Promise<unknown> {
  const insert = db.prepare<StoredRequest>(
    `INSERT INTO request (${REQUEST_COLUMNS}) VALUES (@id, @ca, @operation, @subject, @sans, @key_type, @requester,
     @method, @requester_id, @requester_issuer, @requester_sans, @names, @status, @created_at, @decided_at, @reason, @serial, @csr, @format, @spki_sha256, @otp_id, @recognition,
     @changed_at, @decider, @reference, @missing_since, @device, @device_key, @override, @decided_by, @approvals)`,
  );
  return (row) => insert.run(toStoredRequest(row));
}

/** The writes of queued requests; claiming one and recording its certificate are issuance writes. */
export function requestWrites(db: Queries) {
  const find = findNewest(db);
  const takeUse = takeOtpUse(db);
  const giveBackUse = giveBackOtpUse(db);
  const insert = insertRequest(db);
  const mayIssue = mayIssueTo(db);
  const clear = clearFailures(db);
  const byId = db.prepare<[string], Pick<StoredRequest, 'ca' | 'device_key' | 'decided_by'> & { waits: boolean }>(
    `SELECT ca, device_key, decided_by, ${mayGo('approve')} AS waits FROM request WHERE id = ? FOR UPDATE`,
  );
  const decide = db.prepare<Omit<Decision, 'deciders'> & { decided_by: string }>(
    `UPDATE request SET status = @status, reason = @reason, decided_by = @decided_by,
     decided_at = CASE @status WHEN 'pending' THEN decided_at ELSE @decided_at END,
     changed_at = CASE @status WHEN 'pending' THEN changed_at ELSE @decided_at END
     WHERE id = @id AND ${mayGo('approve')}`,
  );
  const fail = db.prepare<{ id: string; reason: string; now: number }, { otp_id: string | null; ca: string }>(
    `UPDATE request SET ${goes('refuse')}, reason = @reason, changed_at = @now WHERE id = @id AND ${mayGo('refuse')}
     RETURNING otp_id, ca`,
  );
  const { due, expire, purge } = sweepStatements(db);

  return {
    async queueRequest(
      row: RequestRow,
      supersedes: string | null,
      events: readonly AuditEvent[],
      succeeded: readonly string[] = [],
    ): Promise<Outcome<'queued' | 'otp-unusable' | 'device-refused' | RequestRow>> {
      const [known, may] = await Promise.all([find(row.recognition), mayIssue(row.device_key, row.ca, row.created_at)]);
      if (known !== undefined && known.id !== supersedes) return undone(known);
      if (!may) return undone('device-refused');
      const { id, otp_id, recognition, created_at } = row;
      // The same one under way was found above: it stands in the queue.
      const repeatable = { recognition, retry_window: 0 };
      if (otp_id !== null && (await takeUse({ otp_id, request_id: id, now: created_at }, repeatable)) !== 'taken')
        return undone('otp-unusable');
      await Promise.all([insert(row), clear(succeeded)]);
      return done('queued', events, row.device_key);
    },
    async decideRequest(
      { deciders, ...decision }: Decision,
      events: readonly AuditEvent[],
    ): Promise<Outcome<'decided' | 'not-pending' | 'device-refused' | 'overtaken' | 'unknown'>> {
      const row = await byId.get(decision.id);
      if (row === undefined) return undone('unknown');
      const { ca, device_key, waits } = row;
      if (!waits) return undone('not-pending');
      if (deciders !== undefined && row.decided_by !== JSON.stringify(deciders.before)) return undone('overtaken');
      if (decision.status !== 'rejected' && !(await mayIssue(device_key, ca, decision.decided_at)))
        return undone('device-refused');
      const decided_by = deciders === undefined ? row.decided_by : JSON.stringify(deciders.after);
      return (await decide.run({ ...decision, decided_by })) === 1
        ? done('decided', events, device_key)
        : undone('not-pending');
    },
    async failRequest(
      id: string,
      reason: string,
      now: number,
      events: readonly AuditEvent[],
    ): Promise<Outcome<boolean>> {
      const ended = await fail.get({ id, reason, now });
      if (ended === undefined) return undone(false);
      return done(true, [...events, ...(await giveBackUse(ended.otp_id, ended.ca, id))]);
    },
    async expireRequests(
      { pending_ttl, retention }: RequestLifetimes,
      now: number,
    ): Promise<Outcome<{ expired: number; purged: number }>> {
      // First they are ours, then it is seen whether they still are what they were: somebody may have begun to issue one.
      const rows = await due.all({ before: now - pending_ttl });
      const ids = rows.map(({ id }) => id);
      const expired = ids.length === 0 ? [] : await expire.all({ ids, now });
      const purged = await purge.run(now - retention);
      return done({ expired: expired.length, purged }, expired.map(expiredEvent));
    },
  };
}

function sweepStatements(db: Queries) {
  return {
    due: db.prepare<{ before: number }, { id: string }>(
      `SELECT id FROM request WHERE ${mayGo('expire')} AND changed_at <= @before
       ORDER BY position LIMIT ${EXPIRED_AT_ONCE} FOR UPDATE SKIP LOCKED`,
    ),
    expire: db.prepare<{ ids: readonly string[]; now: number }, Expired>(
      `UPDATE request SET ${goes('expire')}, changed_at = @now
       WHERE id = ANY(@ids) AND ${mayGo('expire')} RETURNING id, ca, requester, decided_at`,
    ),
    purge: db.prepare<[number]>(
      `DELETE FROM request WHERE position = ANY(ARRAY(SELECT position FROM request
       WHERE ${inStatus(ENDED)} AND changed_at <= ? LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED))`,
    ),
  };
}
