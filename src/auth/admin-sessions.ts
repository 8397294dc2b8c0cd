/**
 * Browser sessions of administrators. A cookie that scripts cannot read contains a random ID; the store contains its
 * hash. A session contains no roles.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { AuditEvent } from '../audit/event.ts';
import type { Config } from '../config/schema.ts';
import { describe, unauthorized } from '../errors.ts';
import { requestIdField } from '../request-context.ts';
import type { SessionRow, SessionStore } from '../store/session-store.ts';
import type { AdminAuthenticator } from './admin-authenticator.ts';
import type { AdminIdentity } from './administrators.ts';
import type { FailureRecords } from './failure-records.ts';
import type { PresentedCredentials } from './identity.ts';
import { presentedCertificates } from './mtls/presented-certificates.ts';

/** Limits of a session, in seconds: without a call, and in total. */
export type SessionTimes = Config['admin']['sessions'];

/** `seen_at`: the time of the previous use. */
export type AdminSession = Pick<SessionRow, 'id_hash' | 'created_at' | 'seen_at' | 'ends_at'>;

interface AdminSessionsOptions {
  readonly store: SessionStore;
  readonly authenticator: Pick<AdminAuthenticator, 'ofSession'>;
  readonly times: () => SessionTimes;
  readonly failures: Pick<FailureRecords, 'record'>;
  readonly now: () => number;
  readonly log: { readonly warn: (fields: object, message: string) => void };
}

const ID = /^[A-Za-z0-9_-]{43}$/;
const ID_BYTES = 32;
/** Minimum milliseconds between recorded uses; a tenth of the idle timeout if that is less. */
const NOTED_EVERY = 60_000;

const hashOf = (id: string): string => createHash('sha256').update(id).digest('hex');

export class AdminSessions {
  readonly #options: AdminSessionsOptions;

  constructor(options: AdminSessionsOptions) {
    this.#options = options;
  }

  /**
   * Begins a session with a new ID.
   * @param former the ID that the browser sent; its session ends
   * @param events committed with it
   * @returns the ID, which is not stored, and the session
   */
  async begin(
    admin: AdminIdentity,
    presented: PresentedCredentials,
    former: string | undefined,
    events: readonly AuditEvent[],
  ): Promise<{ readonly id: string; readonly session: AdminSession }> {
    const now = this.#options.now();
    const id = randomBytes(ID_BYTES).toString('base64url');
    const row: SessionRow = {
      id_hash: hashOf(id),
      administrator: admin.credential,
      method: admin.method,
      claims: admin.claims === undefined ? null : JSON.stringify(admin.claims),
      certificate: presentedCertificates(presented)?.identity ?? null,
      created_at: now,
      seen_at: now,
      ends_at: Math.min(now + this.times.lifetime * 1000, admin.notAfter ?? Infinity),
    };
    await this.#options.store.createSession(row, former === undefined ? null : hashOf(former), events);
    return { id, session: row };
  }

  /**
   * The administrator of a session, with the roles in force.
   * @throws EstuaryError 401 `SESSION_ENDED` if it is unknown or has ended, the configuration no longer accepts the
   * administrator, or the connection has another certificate; 500 or 503 from the store
   */
  async resume(
    id: string,
    presented: PresentedCredentials,
  ): Promise<{ readonly admin: AdminIdentity; readonly session: AdminSession }> {
    const row = ID.test(id) ? await this.#options.store.getSession(hashOf(id)) : undefined;
    if (row === undefined || !this.isAlive(row)) throw ended();
    const admin = await this.#options.authenticator.ofSession(row, presented);
    if (typeof admin === 'object') return { admin, session: row };
    // The cookie may be stolen.
    const { address } = presented;
    await this.#options.failures.record({
      type: 'auth.admin',
      outcome: 'failure',
      address,
      ...requestIdField(),
      detail: `session: ${admin}`,
    });
    throw ended(admin);
  }

  /** Records a use, which restarts the idle timeout. Never rejects, so that the call continues. */
  async note({ id_hash, seen_at }: AdminSession): Promise<void> {
    const { store, now, log } = this.#options;
    const at = now();
    if (at - seen_at < Math.min(NOTED_EVERY, this.times.idle_timeout * 100)) return;
    await store
      .touchSession(id_hash, at)
      .catch((error: unknown) => log.warn({ detail: describe(error) }, 'cannot record the use of a session'));
  }

  /** @param events committed with the end. `false`: the session does not exist */
  end({ id_hash }: AdminSession, events: readonly AuditEvent[]): Promise<boolean> {
    return this.#options.store.deleteSession(id_hash, events);
  }

  /** Whether neither the idle timeout nor the lifetime is over. */
  isAlive({ seen_at, ends_at }: Pick<AdminSession, 'seen_at' | 'ends_at'>): boolean {
    const now = this.#options.now();
    return now < ends_at && now < seen_at + this.times.idle_timeout * 1000;
  }

  get times(): SessionTimes {
    return this.#options.times();
  }
}

function ended(detail?: string) {
  const more = detail === undefined ? {} : { detail };
  return unauthorized('SESSION_ENDED', 'the session has ended; sign in again', more);
}
