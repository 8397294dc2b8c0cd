/** Lockouts: a sliding window of failure times per key, and the resulting lockouts. */
import type { AuditEvent } from '../audit/event.ts';
import { done, type Events, undone } from './calls/calls.ts';
import { invalidCursor, NEWEST, type Page, type PageRequest, readCursor, toPage } from './page.ts';
import { type Calls, lock, quickRead, slowRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';

export interface LockoutPolicy {
  readonly max_failures: number;
  /** Seconds. */
  readonly failure_window: number;
  /** Seconds. */
  readonly lockout_duration: number;
}

export interface LockoutRow {
  readonly key: string;
  readonly scope: 'address' | 'username' | 'identification';
  readonly failures: number;
  readonly locked_until: number;
}

/** Rows deleted per failure: slightly more than it can add. */
const FORGOTTEN_AT_ONCE = 100;
const SCOPES = ['address', 'username', 'identification'] as const;

type ListedLockout = Omit<LockoutRow, 'scope'>;

/** A key's scope and its value: `address:192.0.2.1`. */
function splitKey(key: string): { scope: LockoutRow['scope']; name: string } {
  const colon = key.indexOf(':');
  const scope = SCOPES.find((candidate) => candidate === key.slice(0, colon));
  if (scope === undefined) throw new RangeError(`invalid lockout key: ${key}`);
  return { scope, name: key.slice(colon + 1) };
}

/** The last item of the previous page. */
function readPlace(page: PageRequest): { end: number; key: string } {
  const text = readCursor('lockout', page) ?? `${page.order === 'desc' ? NEWEST : 0}:`;
  const place = /^(\d{1,16}):(.*)$/s.exec(text);
  if (place === null) throw invalidCursor();
  return { end: Number(place[1]), key: place[2] ?? '' };
}

export function lockoutReads(db: Database) {
  return {
    /** The latest end of the lockouts in force for these keys. */
    lockedUntil: quickRead(function* (keys: readonly string[], now: number): Operation<number | undefined> {
      const found = yield* db.together(keys.map((key) => lockoutOf(db, key, now)));
      const ends = found.flatMap((row) => row?.locked_until ?? []);
      return ends.length === 0 ? undefined : Math.max(...ends);
    }),
    /** In order of their end. */
    listLockouts: slowRead(function* (request: PageRequest, now: number): Operation<Page<LockoutRow>> {
      const { order = 'asc', limit } = request;
      const rows = yield* db.all<ListedLockout>(
        `SELECT key, failures, locked_until FROM lockout INDEXED BY lockout_by_end
         WHERE locked_until > @now AND (locked_until, key) ${order === 'asc' ? '>' : '<'} (@end, @key)
         ORDER BY locked_until ${order}, key ${order} LIMIT @take`,
        { now, ...readPlace(request), take: limit + 1 },
      );
      const key = (row: ListedLockout): string => `${row.locked_until}:${row.key}`;
      return toPage('lockout', rows, request, key, (row) => ({ ...row, scope: splitKey(row.key).scope }));
    }),
  };
}

const lockoutOf = (db: Database, key: string, now: number) =>
  db.get<{ locked_until: number }>`SELECT locked_until FROM lockout WHERE key = ${key} AND locked_until > ${now}`;

const ofOne = (key: string) => lock.passwords([key]);

export function lockoutWrites(db: Database) {
  const forget = (table: string, key: string, column: string) =>
    `DELETE FROM ${table} WHERE ${db.dialect.among(table, key, `WHERE ${column} <= ? LIMIT ${FORGOTTEN_AT_ONCE}`)}`;
  const forgetKey = (key: string) => db.run`DELETE FROM failure WHERE key = ${key}`;
  const forgetFailures = forget('failure', 'rowid', 'at');
  const forgetLockouts = forget('lockout', 'key', 'locked_until');

  function* countFailure(key: string, policy: LockoutPolicy, now: number, events: Events): Operation<Events> {
    if ((yield* lockoutOf(db, key, now)) !== undefined) return [];
    const since = now - policy.failure_window * 1000;
    const [, counted] = yield* db.together([
      db.run`INSERT INTO failure (key, at) VALUES (${key}, ${now})`,
      db.get<{ n: number }>`SELECT count(*) AS n FROM failure WHERE key = ${key} AND at > ${since}`,
    ]);
    const failures = counted?.n ?? 0;
    if (failures <= policy.max_failures) return [];
    yield* db.together([
      db.run`INSERT INTO lockout (key, failures, locked_until)
        VALUES (${key}, ${failures}, ${now + policy.lockout_duration * 1000})
        ON CONFLICT (key) DO UPDATE SET failures = excluded.failures, locked_until = excluded.locked_until`,
      forgetKey(key),
    ]);
    return [lockoutStarted(key, failures, policy, events[0])];
  }

  return {
    /**
     * Counts one failure on each key; more than `max_failures` within the window start a lockout (audited as
     * `lockout.started`). A locked key is not counted; `events` are committed in any case.
     */
    recordFailure: write(
      lock.passwords,
      function* (keys: readonly string[], policy: LockoutPolicy, now: number, events: Events): Write<void> {
        // Old rows are deleted with each new one, so that a flood from many addresses cannot fill the disk.
        const [started] = yield* db.together([
          db.together(keys.map((key) => countFailure(key, policy, now, events))),
          db.run(forgetFailures, now - policy.failure_window * 1000),
          db.run(forgetLockouts, now),
        ]);
        return done(undefined, [...events, ...started.flat()]);
      },
    ),
    deleteLockout: write(ofOne, function* (key: string, events: Events): Write<boolean> {
      yield* forgetKey(key);
      return (yield* db.run`DELETE FROM lockout WHERE key = ${key}`) === 1 ? done(true, events) : undone(false);
    }),
  };
}

/** @param cause the event of the failure */
function lockoutStarted(
  key: string,
  failures: number,
  policy: LockoutPolicy,
  cause: AuditEvent | undefined,
): AuditEvent {
  const { scope, name } = splitKey(key);
  return {
    type: 'lockout.started',
    outcome: 'success',
    ...(scope === 'address' ? { address: name } : { subject: name }),
    ...(cause?.request_id === undefined ? {} : { request_id: cause.request_id }),
    detail: `${scope}: ${failures} failures within ${policy.failure_window} s, locked out for ${policy.lockout_duration} s`,
  };
}

/**
 * Failed passwords and lockouts. Keys are `address:…` / `username:…` / `identification:…`. A success clears nothing:
 * the holder of a valid password could guess others without end.
 */
export type LockoutStore = Calls<ReturnType<typeof lockoutReads> & ReturnType<typeof lockoutWrites>>;
