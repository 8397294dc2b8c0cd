import type { AuditEvent } from '../../audit/event.ts';
import type { Page } from '../page.ts';
import type { Decision, RequestFilter, RequestLifetimes, RequestRow } from '../request-store.ts';
import { PURGED_AT_ONCE } from '../retention-store.ts';
import { ANSWERED, ENDED, goes, inStatus, mayGo } from '../request-state.ts';
import {
  type Expired,
  expiredEvent,
  REQUEST_COLUMNS,
  type StoredRequest,
  toRequestRow,
  toStoredRequest,
} from '../rows/request.ts';
import { readPosition, toPage, withoutPosition } from '../cursor.ts';
import type { Db } from './database.ts';
import { mayIssueTo } from './device-admission.ts';
import { clearFailures } from './lockout.ts';
import { giveBackOtpUse, takeOtpUse } from './otp-uses.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import { given, ListSearch } from './search/list-search.ts';
import { SEARCH_LIMITS, type SearchLimits } from './search/walk.ts';

/** A failed or expired request is over: the same one may be queued anew, unless it failed for good. */
export function findNewest(db: Db): (recognition: string) => RequestRow | undefined {
  const newest = db.prepare<[string], StoredRequest>(
    `SELECT ${REQUEST_COLUMNS} FROM request WHERE recognition = ?
     AND (${inStatus(ANSWERED)} OR (status = 'failed' AND final = 1)) ORDER BY position DESC LIMIT 1`,
  );
  return (recognition) => {
    const stored = newest.get(recognition);
    return stored === undefined ? undefined : toRequestRow(stored);
  };
}

/** The reads of queued requests. */
export function requestReads(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const byId = db.prepare<[string], StoredRequest>(`SELECT ${REQUEST_COLUMNS} FROM request WHERE id = ?`);
  const search = new ListSearch<StoredRequest & { position: number }>(
    db,
    { table: 'request', place: 'position', columns: REQUEST_COLUMNS },
    limits,
  );
  return {
    findRequest: findNewest(db),
    getRequest(id: string): RequestRow | undefined {
      const stored = byId.get(id);
      return stored === undefined ? undefined : toRequestRow(stored);
    },
    listRequests(filter: RequestFilter): Page<RequestRow> {
      const { device, requester, status, ca, limit } = filter;
      const asked = given([
        { value: device, sql: 'device = @device', index: 'request_by_device_id' },
        { value: requester, sql: 'requester = @requester', index: 'request_by_requester' },
        { value: status, sql: 'status = @status', index: 'request_in_status' },
        { value: ca, sql: 'ca = @ca', index: 'request_by_ca' },
      ]);
      const { rows, stopped } = search.find(
        asked,
        { ...filter },
        { ...filter, after: readPosition('request', filter) },
      );
      return toPage(
        'request',
        rows,
        limit,
        (row) => row.position,
        (row) => toRequestRow(withoutPosition(row)),
        stopped,
      );
    },
  };
}

export function insertRequest(db: Db): (row: RequestRow) => void {
  const insert = db.prepare<[object]>(
    `INSERT INTO request (${REQUEST_COLUMNS}) VALUES (@id, @ca, @operation, @subject, @sans, @key_type, @requester,
     @method, @requester_id, @requester_issuer, @requester_sans, @names, @status, @created_at, @decided_at, @reason, @serial, @csr, @format, @spki_sha256, @otp_id, @recognition,
     @changed_at, @decider, @reference, @missing_since, @device, @device_key, @override, @decided_by, @approvals)`,
  );
  return (row) => void insert.run(toStoredRequest(row));
}

/** The writes of queued requests; claiming one and recording its certificate are issuance writes. */
export function requestWrites(db: Db) {
  const find = findNewest(db);
  const takeUse = takeOtpUse(db);
  const giveBackUse = giveBackOtpUse(db);
  const insert = insertRequest(db);
  const mayIssue = mayIssueTo(db);
  const clear = clearFailures(db);
  const byId = db.prepare<[string], Pick<StoredRequest, 'ca' | 'device_key' | 'decided_by'>>(
    'SELECT ca, device_key, decided_by FROM request WHERE id = ?',
  );
  const decide = db.prepare<[Omit<Decision, 'deciders'> & { decided_by: string }]>(
    `UPDATE request SET status = @status, reason = @reason, decided_by = @decided_by,
     decided_at = iif(@status = 'pending', decided_at, @decided_at), changed_at = iif(@status = 'pending', changed_at, @decided_at)
     WHERE id = @id AND ${mayGo('approve')}`,
  );
  const waiting = db.prepare<[string], { id: string }>(`SELECT id FROM request WHERE id = ? AND ${mayGo('approve')}`);
  const fail = db.prepare<{ id: string; reason: string; now: number }, { otp_id: string | null; ca: string }>(
    `UPDATE request SET ${goes('refuse')}, reason = @reason, changed_at = @now WHERE id = @id AND ${mayGo('refuse')}
     RETURNING otp_id, ca`,
  );
  const { expire, purge } = sweepStatements(db);

  return {
    queueRequest(
      row: RequestRow,
      supersedes: string | null,
      events: readonly AuditEvent[],
      succeeded: readonly string[] = [],
    ): Outcome<'queued' | 'otp-unusable' | 'device-refused' | RequestRow> {
      const known = find(row.recognition);
      if (known !== undefined && known.id !== supersedes) return undone(known);
      if (!mayIssue(row.device_key, row.ca, row.created_at)) return undone('device-refused');
      const { id, otp_id, recognition, created_at } = row;
      // The same one under way was found above: it stands in the queue.
      const repeatable = { recognition, retry_window: 0 };
      if (otp_id !== null && takeUse({ otp_id, request_id: id, now: created_at }, repeatable) !== 'taken')
        return undone('otp-unusable');
      insert(row);
      clear(succeeded);
      return done('queued', events, row.device_key);
    },
    decideRequest(
      { deciders, ...decision }: Decision,
      events: readonly AuditEvent[],
    ): Outcome<'decided' | 'not-pending' | 'device-refused' | 'overtaken' | 'unknown'> {
      const row = byId.get(decision.id);
      if (row === undefined) return undone('unknown');
      const { ca, device_key } = row;
      if (waiting.get(decision.id) === undefined) return undone('not-pending');
      if (deciders !== undefined && row.decided_by !== JSON.stringify(deciders.before)) return undone('overtaken');
      if (decision.status !== 'rejected' && !mayIssue(device_key, ca, decision.decided_at))
        return undone('device-refused');
      const decided_by = deciders === undefined ? row.decided_by : JSON.stringify(deciders.after);
      return decide.run({ ...decision, decided_by }).changes === 1
        ? done('decided', events, device_key)
        : undone('not-pending');
    },
    failRequest(id: string, reason: string, now: number, events: readonly AuditEvent[]): Outcome<boolean> {
      const ended = fail.get({ id, reason, now });
      if (ended === undefined) return undone(false);
      return done(true, [...events, ...giveBackUse(ended.otp_id, ended.ca, id)]);
    },
    expireRequests(
      { pending_ttl, retention }: RequestLifetimes,
      now: number,
    ): Outcome<{ expired: number; purged: number }> {
      const expired = expire.all({ now, before: now - pending_ttl });
      const purged = purge.run(now - retention).changes;
      return done({ expired: expired.length, purged }, expired.map(expiredEvent));
    },
  };
}

function sweepStatements(db: Db) {
  return {
    expire: db.prepare<{ now: number; before: number }, Expired>(
      `UPDATE request SET ${goes('expire')}, changed_at = @now WHERE ${mayGo('expire')} AND changed_at <= @before
       RETURNING id, ca, requester, decided_at`,
    ),
    // A batch, so that the transactions that wait meanwhile do not wait long.
    purge: db.prepare<[number]>(
      `DELETE FROM request WHERE position IN
       (SELECT position FROM request WHERE ${inStatus(ENDED)} AND changed_at <= ? LIMIT ${PURGED_AT_ONCE})`,
    ),
  };
}
