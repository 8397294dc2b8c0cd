/** Requests that a remote CA decides. */
import { done, undone } from '../calls/calls.ts';
import type { RequestEnd } from '../request-store.ts';
import { goes, inStatus, mayGo, restsIn } from '../request-state.ts';
import { mayIssueTo, insertReservation } from './issuance.ts';
import { clearFailures } from './lockout.ts';
import { giveBackOtpUse, takeOtpUse } from './otp.ts';
import type { Database, Reads, Writes } from './port.ts';
import { findNewest, insertRequest, REQUEST_COLUMNS, type StoredRequest, toRequestRow } from './requests.ts';

/** Pending at the CA, and no process is working on it. */
const IDLE = restsIn('pending at the CA');

export function remoteRequestReads(db: Database) {
  const doubtful = db.prepare<{ before: number; limit: number }, StoredRequest>(
    `SELECT ${REQUEST_COLUMNS} FROM request WHERE ${IDLE} AND reference IS NULL
     AND (polled_at IS NULL OR polled_at <= @before) ORDER BY position LIMIT @limit`,
  );
  return {
    *listUnanswered(before, limit) {
      return (yield* doubtful.all({ before, limit })).map(toRequestRow);
    },
  } satisfies Reads;
}

export function remoteRequestWrites(db: Database) {
  const reserve = insertReservation(db);
  const find = findNewest(db);
  const takeUse = takeOtpUse(db);
  const giveBackUse = giveBackOtpUse(db);
  const insert = insertRequest(db);
  const mayIssue = mayIssueTo(db);
  const clear = clearFailures(db);
  const passOn = db.prepare<{ id: string; now: number }>(
    `UPDATE request SET ${goes('handOver')}, changed_at = @now WHERE id = @id
     AND ${mayGo('handOver')}`,
  );
  const close = db.prepare<[string]>('DELETE FROM reservation WHERE request_id = ?');
  const setReference = db.prepare<{ id: string; reference: string }>(
    `UPDATE request SET reference = @reference, missing_since = NULL WHERE id = @id AND ${inStatus(['pending'])}`,
  );
  const backToApproved = db.prepare<{ id: string }>(
    `UPDATE request SET ${goes('takeBack')}, polled_at = NULL
     WHERE id = @id AND ${mayGo('takeBack')} AND decided_at IS NOT NULL`,
  );
  const remove = db.prepare<[string], { otp_id: string | null; ca: string }>(
    `DELETE FROM request WHERE id = ? AND ${mayGo('withdraw')} RETURNING otp_id, ca`,
  );
  const notePoll = db.prepare<{ id: string; now: number; before: number }, { idle: number }>(
    `UPDATE request SET polled_at = @now WHERE id = @id AND ${mayGo('withdraw')}
     AND (polled_at IS NULL OR polled_at <= @before) RETURNING CASE WHEN ${IDLE} THEN 1 ELSE 0 END AS idle`,
  );
  const setMissing = db.prepare<{ id: string; since: number | null }>(
    `UPDATE request SET missing_since = @since WHERE id = @id AND ${inStatus(['pending'])}`,
  );
  const end = db.prepare<
    Omit<RequestEnd, 'final' | 'otp_use_returns'> & { id: string; now: number; final: number },
    { otp_id: string | null; ca: string }
  >(
    `UPDATE request SET status = @status, reason = @reason, final = @final, changed_at = @now,
     decided_at = coalesce(@decided_at, decided_at) WHERE id = @id AND ${mayGo('failAtCa')} RETURNING otp_id, ca`,
  );

  return {
    *submitRequest(row, supersedes, reservation, events, retry_window = 0) {
      const { id, otp_id, recognition, created_at } = row;
      const [known, may] = yield* db.together([
        find(recognition),
        mayIssue(row.required_device, row.ca, reservation.created_at),
      ]);
      if (!may) return undone('device-refused');
      if (known?.id === row.id) {
        if ((yield* passOn.run({ id: row.id, now: reservation.created_at })) === 0) return undone(known);
      } else {
        if (known !== undefined && known.id !== supersedes) return undone(known);
        const taken =
          otp_id === null
            ? 'taken'
            : yield* takeUse({ otp_id, request_id: id, now: created_at }, { recognition, retry_window });
        if (taken !== 'taken') return undone(taken);
        yield* insert({ ...row, decider: 'ca' });
      }
      yield* reserve({ ...reservation, otp_id: null });
      return done('submitted', events, row.device_key);
    },
    *awaitCa(id, reference, events, succeeded = []) {
      yield* db.together([
        close.run(id),
        clear(succeeded),
        ...(reference === null ? [] : [setReference.run({ id, reference })]),
      ]);
      return done(undefined, events);
    },
    *withdrawRequest(id, events) {
      yield* close.run(id);
      if ((yield* backToApproved.run({ id })) > 0) return done(undefined, events);
      const removed = yield* remove.get(id);
      const returned = removed === undefined ? [] : yield* giveBackUse(removed.otp_id, removed.ca, id);
      return done(undefined, [...events, ...returned]);
    },
    *takePoll(id, now, before) {
      return done((yield* notePoll.get({ id, now, before }))?.idle === 1, []);
    },
    *noteMissing(id, since) {
      yield* setMissing.run({ id, since });
      return done(undefined, []);
    },
    *endRequest(id, ending, now, events) {
      const { status, reason, decided_at, final, otp_use_returns } = ending;
      const ended = yield* end.get({ id, status, reason, decided_at, now, final: final ? 1 : 0 });
      if (ended === undefined) return undone(false);
      const returned = yield* giveBackUse(otp_use_returns ? ended.otp_id : null, ended.ca, id);
      return done(true, [...events, ...returned]);
    },
  } satisfies Writes;
}
