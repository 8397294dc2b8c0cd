/** Requests that a remote CA decides. */
import { done, type Events, undone } from './calls/calls.ts';
import { insertReservation, mayIssue, type Reservation } from './issuance-store.ts';
import { giveBackOtpUse, takeOtpUse } from './otp-store.ts';
import { beginWork, type Calls, lock, quickRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';
import { goes, mayGo, restsIn } from './request-state.ts';
import { takeRescue } from './rescue-store.ts';
import {
  type Ended,
  findNewest,
  insertRequest,
  newRequest,
  REQUEST_COLUMNS,
  type RequestRow,
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

const DUE = `SELECT ${REQUEST_COLUMNS} FROM request WHERE ${IDLE} AND (reference IS NULL OR ca = ANY(@advancing))
  AND (polled_at IS NULL OR polled_at <= @before) ORDER BY coalesce(polled_at, 0), position LIMIT @limit`;

export function remoteRequestReads(db: Database) {
  return {
    /**
     * Requests that no process is working on or has looked up since `before`, without a reference or at CAs where only
     * polls advance them; those that nobody looked up for longest first.
     */
    listToPoll: quickRead(function* (
      before: number,
      limit: number,
      advancing: readonly string[],
    ): Operation<readonly RequestRow[]> {
      return (yield* db.all<StoredRequest>(DUE, { before, limit, advancing })).map(toRequestRow);
    }),
  };
}

const HAND_OVER = `UPDATE request SET ${goes('handOver')}, changed_at = @now WHERE id = @id AND ${mayGo('handOver')}`;
const TAKE_BACK = `UPDATE request SET ${goes('takeBack')}, polled_at = NULL
  WHERE id = ? AND ${mayGo('takeBack')} AND decided_at IS NOT NULL`;
const WITHDRAW = `DELETE FROM request WHERE id = ? AND ${mayGo('withdraw')} RETURNING otp_id, ca`;
const NOTE_POLL = `UPDATE request SET polled_at = @now WHERE id = @id AND ${mayGo('withdraw')}
  AND (polled_at IS NULL OR polled_at <= @before) RETURNING CASE WHEN ${IDLE} THEN 1 ELSE 0 END AS idle`;
const END = `UPDATE request SET status = @status, reason = @reason, final = @final, changed_at = @now,
  decided_at = coalesce(@decided_at, decided_at) WHERE id = @id AND ${mayGo('failAtCa')} RETURNING otp_id, ca`;

const submitted = (row: RequestRow, _supersedes: string | null, reservation?: Reservation) => [
  ...newRequest(row),
  ...lock.rescued(reservation?.rescued),
];

export function remoteRequestWrites(db: Database) {
  const close = (id: string) => db.run`DELETE FROM reservation WHERE request_id = ${id}`;
  return {
    /**
     * Commits the intent to submit: {@link RequestStore.queueRequest} with the CA as the decider (or an approved request handed on to
     * it), and the reservation that the process holds while it works on it.
     * @param retry_window as in {@link Repeatable}
     */
    submitRequest: beginWork(
      submitted,
      function* (
        row: RequestRow,
        supersedes: string | null,
        reservation: Reservation,
        events: Events,
        retry_window: number = 0,
      ): Write<'submitted' | 'otp-unusable' | 'device-refused' | 'repeated' | 'rescue-over' | RequestRow> {
        const { id, otp_id, recognition, created_at } = row;
        const [known, may] = yield* db.together([
          findNewest(db, recognition),
          mayIssue(db, row.required_device, row.ca, reservation.created_at),
        ]);
        if (!may) return undone('device-refused');
        if (known !== undefined && known.id !== id && known.id !== supersedes) return undone(known);
        const pass = yield* takeRescue(db, id, reservation.rescued, reservation.created_at);
        if (pass !== 'taken') return undone(pass);
        if (known?.id === id) {
          if ((yield* db.run(HAND_OVER, { id, now: reservation.created_at })) === 0) return undone(known);
        } else {
          const wanted = { otp_id, request_id: id, now: created_at };
          const taken = yield* takeOtpUse(db, wanted, { recognition, retry_window });
          if (taken !== 'taken') return undone(taken);
          yield* insertRequest(db, { ...row, decider: 'ca' });
        }
        yield* insertReservation(db, { ...reservation, otp_id: null });
        return done('submitted', events, row.device_key);
      },
    ),
    /**
     * Closes the reservation; the request is pending at the CA.
     * @param reference null: the outcome of the submission is unknown
     */
    awaitCa: write(lock.request, function* (id: string, reference: string | null, events: Events): Write<void> {
      yield* db.together([
        close(id),
        ...(reference === null
          ? []
          : [
              db.run`UPDATE request SET reference = ${reference}, missing_since = NULL
                WHERE id = ${id} AND status = 'pending'`,
            ]),
      ]);
      return done(undefined, events);
    }),
    /**
     * Closes the reservation of a request that the CA certainly did not receive. The request is deleted, and its OTP use
     * returned; an approved request becomes approved again.
     */
    withdrawRequest: write(lock.ending, function* (id: string, events: Events): Write<void> {
      yield* close(id);
      if ((yield* db.run(TAKE_BACK, id)) > 0) return done(undefined, events);
      const removed = yield* db.get<Ended>(WITHDRAW, id);
      const returned = removed === undefined ? [] : yield* giveBackOtpUse(db, removed.otp_id, removed.ca, id);
      return done(undefined, [...events, ...returned]);
    }),
    /**
     * Records a poll. true: the caller may ask the CA, since nobody has since `before` and no process is working on it.
     */
    takePoll: write(lock.request, function* (id: string, now: number, before: number): Write<boolean> {
      return done((yield* db.get<{ idle: number }>(NOTE_POLL, { id, now, before }))?.idle === 1, []);
    }),
    /** What it waits for, and since when the CA does not know it. */
    noteWaiting: write(
      lock.request,
      function* (id: string, { reason, missing_since }: Pick<RequestRow, 'reason' | 'missing_since'>): Write<void> {
        yield* db.run`UPDATE request SET missing_since = ${missing_since}, reason = ${reason}
          WHERE id = ${id} AND status = 'pending'`;
        return done(undefined, []);
      },
    ),
    /** `false`: it is no longer pending, or a process is working on it; nothing changed. */
    endRequest: write(
      lock.ending,
      function* (id: string, end: RequestEnd, now: number, events: Events): Write<boolean> {
        const { status, reason, decided_at, final, otp_use_returns } = end;
        const ended = yield* db.get<Ended>(END, { id, status, reason, decided_at, now, final: final ? 1 : 0 });
        if (ended === undefined) return undone(false);
        const returned = yield* giveBackOtpUse(db, otp_use_returns ? ended.otp_id : null, ended.ca, id);
        return done(true, [...events, ...returned]);
      },
    ),
  };
}

/** Requests that a remote CA decides. */
export type RemoteRequestStore = Calls<ReturnType<typeof remoteRequestReads> & ReturnType<typeof remoteRequestWrites>>;
