/** Requests that a remote CA decides. */
import { done, type Events, undone } from './calls/calls.ts';
import { insertReservation, type Reservation } from './issuance-store.ts';
import type { Calls, Database, Operation, Write } from './port.ts';
import { goes, inStatus, mayGo, restsIn } from './request-state.ts';
import {
  REQUEST_COLUMNS,
  type RequestRow,
  type RequestSteps,
  type StoredRequest,
  toRequestRow,
} from './request-store.ts';

/** How a request at a remote CA ends. */
export interface RequestEnd {
  readonly status: 'rejected' | 'failed';
  readonly reason: string;
  /** null: no decision. */
  readonly decided_at: number | null;
  /** Permanent: a repeat gets the same answer. */
  readonly final: boolean;
  readonly otp_use_returns: boolean;
}

/** Pending at the CA, and no process is working on it. */
const IDLE = restsIn('pending at the CA');

export function remoteRequestReads(db: Database) {
  const doubtful = db.prepare<{ before: number; limit: number }, StoredRequest>(
    `SELECT ${REQUEST_COLUMNS} FROM request WHERE ${IDLE} AND reference IS NULL
     AND (polled_at IS NULL OR polled_at <= @before) ORDER BY position LIMIT @limit`,
  );
  return {
    /** Requests without a reference that no process is working on or has looked up since `before`; oldest first. */
    *listUnanswered(before: number, limit: number): Operation<readonly RequestRow[]> {
      return (yield* doubtful.all({ before, limit })).map(toRequestRow);
    },
  };
}

export function remoteRequestWrites(db: Database, steps: RequestSteps) {
  const { find, insert, takeUse, giveBackUse, mayIssue, clear } = steps;
  const reserve = insertReservation(db);
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
    /**
     * Commits the intent to submit: {@link RequestStore.queueRequest} with the CA as the decider (or an approved request handed on to
     * it), and the reservation that the process holds while it works on it.
     * @param retry_window as in {@link Repeatable}
     */
    *submitRequest(
      row: RequestRow,
      supersedes: string | null,
      reservation: Reservation,
      events: Events,
      retry_window: number = 0,
    ): Write<'submitted' | 'otp-unusable' | 'device-refused' | 'repeated' | RequestRow> {
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
    /**
     * Closes the reservation; the request is pending at the CA.
     * @param reference null: the outcome of the submission is unknown
     * @param succeeded the lockout keys to clear
     */
    *awaitCa(id: string, reference: string | null, events: Events, succeeded: readonly string[] = []): Write<void> {
      yield* db.together([
        close.run(id),
        clear(succeeded),
        ...(reference === null ? [] : [setReference.run({ id, reference })]),
      ]);
      return done(undefined, events);
    },
    /**
     * Closes the reservation of a request that the CA certainly did not receive. The request is deleted, and its OTP use
     * returned; an approved request becomes approved again.
     */
    *withdrawRequest(id: string, events: Events): Write<void> {
      yield* close.run(id);
      if ((yield* backToApproved.run({ id })) > 0) return done(undefined, events);
      const removed = yield* remove.get(id);
      const returned = removed === undefined ? [] : yield* giveBackUse(removed.otp_id, removed.ca, id);
      return done(undefined, [...events, ...returned]);
    },
    /**
     * Records a poll. true: the caller may ask the CA, since nobody has since `before` and no process is working on it.
     */
    *takePoll(id: string, now: number, before: number): Write<boolean> {
      return done((yield* notePoll.get({ id, now, before }))?.idle === 1, []);
    },
    *noteMissing(id: string, since: number | null): Write<void> {
      yield* setMissing.run({ id, since });
      return done(undefined, []);
    },
    /** `false`: it is no longer pending, or a process is working on it; nothing changed. */
    *endRequest(id: string, ending: RequestEnd, now: number, events: Events): Write<boolean> {
      const { status, reason, decided_at, final, otp_use_returns } = ending;
      const ended = yield* end.get({ id, status, reason, decided_at, now, final: final ? 1 : 0 });
      if (ended === undefined) return undone(false);
      const returned = yield* giveBackUse(otp_use_returns ? ended.otp_id : null, ended.ca, id);
      return done(true, [...events, ...returned]);
    },
  };
}

/** Requests that a remote CA decides. */
export type RemoteRequestStore = Calls<ReturnType<typeof remoteRequestReads> & ReturnType<typeof remoteRequestWrites>>;
