/** Lockouts as rows: their keys, their pages, and what the audit log says of them. */
import type { AuditEvent } from '../../audit/event.ts';
import { invalidCursor, readCursor, toPage } from '../cursor.ts';
import type { LockoutPolicy, LockoutRow } from '../lockout-store.ts';
import { NEWEST, type Page, type PageRequest } from '../page.ts';

const SCOPES = ['address', 'username', 'identification'] as const;

/** A key's scope and what it names: `address:192.0.2.1`. */
export function splitKey(key: string): { scope: LockoutRow['scope']; name: string } {
  const colon = key.indexOf(':');
  const scope = SCOPES.find((candidate) => candidate === key.slice(0, colon));
  if (scope === undefined) throw new RangeError(`not a lockout key: ${key}`);
  return { scope, name: key.slice(colon + 1) };
}

export type ListedLockout = Omit<LockoutRow, 'scope'>;

export interface LockoutPlace {
  readonly now: number;
  /** Of the last item of the page before. */
  readonly end: number;
  readonly key: string;
  readonly take: number;
}

export function readPlace(page: PageRequest): Pick<LockoutPlace, 'end' | 'key'> {
  const text = readCursor('lockout', page) ?? `${page.order === 'desc' ? NEWEST : 0}:`;
  const place = /^(\d{1,16}):(.*)$/s.exec(text);
  if (place === null) throw invalidCursor();
  return { end: Number(place[1]), key: place[2] ?? '' };
}

/** @param rows one more than the limit, where there are */
export const lockoutPage = (rows: readonly ListedLockout[], limit: number): Page<LockoutRow> =>
  toPage(
    'lockout',
    rows,
    limit,
    (row) => `${row.locked_until}:${row.key}`,
    (row) => ({ ...row, scope: splitKey(row.key).scope }),
  );

/** What the audit log says of the beginning of a lockout. */
export function lockoutStarted(
  key: string,
  failures: number,
  policy: LockoutPolicy,
  request: Pick<AuditEvent, 'request_id'>,
): AuditEvent {
  const { scope, name } = splitKey(key);
  return {
    type: 'lockout.started',
    outcome: 'success',
    ...(scope === 'address' ? { address: name } : { subject: name }),
    ...request,
    detail: `${scope}: ${failures} failures within ${policy.failure_window} s, locked out for ${policy.lockout_duration} s`,
  };
}

/** The request that failures are counted for. */
export function requestOf(events: readonly AuditEvent[]): Pick<AuditEvent, 'request_id'> {
  const id = events[0]?.request_id;
  return id === undefined ? {} : { request_id: id };
}
