/**
 * Counting failures of shared secrets and locking out. The counts live in the store, so a restart keeps
 * them. A right password clears nothing: only what comes of its use does, in the same transaction.
 */
import { createHash } from 'node:crypto';

import type { AuditEvent } from '../audit/event.ts';
import { unauthorized } from '../errors.ts';
import type { LockoutPolicy, LockoutStore } from '../store/lockout-store.ts';
import type { AuditStore } from '../store/audit-store.ts';
import { lockoutAddress } from './identity.ts';

export interface LockoutSettings extends LockoutPolicy {
  readonly lockout_scope: 'address' | 'username' | 'both';
}

/** Whoever claims to be somebody: a Basic username, or an identification of CMC (RFC 5272 §6.2.3). */
interface ClaimedName {
  readonly kind: 'username' | 'identification';
  /** As {@link presentableName} writes it. */
  readonly name: string;
}

/** How often an attempt during a lockout is audited, per key: the answer costs nothing, so neither may its record. */
const REPORT_INTERVAL = 60_000;
const MAX_REPORTS = 1000;

export class Lockout {
  readonly #store: AuditStore & LockoutStore;
  readonly #settings: LockoutSettings;
  readonly #reported = new Map<string, number>();

  constructor(store: AuditStore & LockoutStore, settings: LockoutSettings) {
    this.#store = store;
    this.#settings = settings;
  }

  /** What a failure is counted on, by `lockout_scope`. */
  keys(address: string, claimed: ClaimedName): string[] {
    const { lockout_scope } = this.#settings;
    const byAddress = lockout_scope === 'username' ? [] : [`address:${lockoutAddress(address)}`];
    const byName = lockout_scope === 'address' ? [] : [`${claimed.kind}:${claimed.name}`];
    return [...byAddress, ...byName];
  }

  /**
   * Passes unless one of the keys is locked out.
   *
   * @param event what to audit, once a minute per key
   * @throws EstuaryError 401 `too many failures, locked out` with the seconds left
   */
  async check(keys: readonly string[], now: number, event: AuditEvent): Promise<void> {
    const until = await this.#store.lockedUntil(keys, now);
    if (until === undefined) return;
    if (this.#isReportDue(keys.join('\n'), now)) await this.#store.audit([{ ...event, detail: 'locked out' }]);
    throw unauthorized('LOCKED_OUT', 'too many failures, locked out', {
      retryAfter: Math.max(1, Math.ceil((until - now) / 1000)),
    });
  }

  #isReportDue(key: string, now: number): boolean {
    const last = this.#reported.get(key);
    if (last !== undefined && now - last < REPORT_INTERVAL) return false;
    this.#reported.delete(key);
    this.#reported.set(key, now);
    const [oldest] = this.#reported.keys();
    if (this.#reported.size > MAX_REPORTS && oldest !== undefined) this.#reported.delete(oldest);
    return true;
  }

  /** Counts a failure; the event is committed with the count. */
  async countFailure(keys: readonly string[], now: number, event: AuditEvent): Promise<void> {
    await this.#store.recordFailure(keys, this.#settings, now, [event]);
  }
}

/** Longer names are shortened to their hash: they become keys of the store and text of the audit log. */
const MAX_NAME = 128;

/**
 * A claimed name as it may stand in the store and the audit log: itself, or a hash where it is very long, holds
 * control characters, or is of the form of a token (somebody mixed up the two fields).
 *
 * @param tokenLength characters of a whole token
 */
export function presentableName(name: string, tokenLength: number): string {
  const isTokenLike = name.length === tokenLength && /^[0-9A-Za-z]+$/.test(name);
  if (name.length <= MAX_NAME && !/[\p{Cc}\u2028\u2029]/u.test(name) && !isTokenLike) return name;
  return `sha256-${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}
