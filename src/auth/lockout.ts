/**
 * Counts failures of shared secrets and locks out. The counts are in the store, so they survive a restart. A success
 * does not clear them.
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

/** The claimed name: a Basic username, or a CMC identification (RFC 5272 §6.2.3). */
interface ClaimedName {
  readonly kind: 'username' | 'identification';
  /** In the form of {@link presentableName}, a username in that of {@link lockoutName}. */
  readonly name: string;
}

/** Milliseconds between audit records of attempts during a lockout, per key: a client causes these at no cost. */
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

  /** The keys that a failure counts on, by `lockout_scope`. */
  keys(address: string, claimed: ClaimedName): string[] {
    const { lockout_scope } = this.#settings;
    const byAddress = lockout_scope === 'username' ? [] : [`address:${lockoutAddress(address)}`];
    const byName = lockout_scope === 'address' ? [] : [`${claimed.kind}:${claimed.name}`];
    return [...byAddress, ...byName];
  }

  /**
   * @param event audited at most once per minute and key
   * @throws EstuaryError 401 `too many failures, locked out` with the remaining seconds
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

  async countFailure(keys: readonly string[], now: number, event: AuditEvent): Promise<void> {
    await this.#store.recordFailure(keys, this.#settings, now, [event]);
  }
}

/**
 * The form in which lockouts count a username or a DN: directories ignore case and extra white space (RFC 4518).
 * @param tokenLength as for {@link presentableName}
 */
export function lockoutName(name: string, tokenLength: number): string {
  // Through upper case, which folds more characters, such as ß.
  const folded = name.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');
  return presentableName(folded.replace(/\p{Zs}+/gu, ' ').replace(/^ | $/g, ''), tokenLength);
}

/** Longer names are replaced by their hash in the store and the audit log. */
const MAX_NAME = 128;

/**
 * A claimed name for the store and the audit log: unchanged, or a hash if it is very long, contains control characters
 * or lone surrogates, or looks like a token (in the wrong field).
 * @param tokenLength characters of a token
 */
export function presentableName(name: string, tokenLength: number): string {
  const isTokenLike = name.length === tokenLength && /^[0-9A-Za-z]+$/.test(name);
  if (name.length <= MAX_NAME && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name) && !isTokenLike) return name;
  return `sha256-${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}
