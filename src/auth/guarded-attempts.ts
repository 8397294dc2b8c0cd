/** Lockout and concurrency limits for credentials that an external service verifies (LDAP, JWT). */
import type { AuditEvent } from '../audit/event.ts';
import { unauthorized, type EstuaryError } from '../errors.ts';
import { requestIdField } from '../request-context.ts';
import { lockoutName, presentableName, type Lockout } from './lockout.ts';
import { AttemptLimiter, passwordCheckBusy } from './otp/hashing-pool.ts';

type PasswordMethod = 'otp' | 'ldap' | 'jwt';

/** The credential is wrong. The detail is for the audit log only. */
export class CredentialRefused extends Error {}

interface GuardOptions {
  readonly method: 'ldap' | 'jwt';
  readonly lockout: Lockout;
  /** `otp.token_length`: a name that looks like a token is not stored. */
  readonly tokenLength: number;
  readonly retryAfter: number;
}

/** Origin and purpose of an attempt. */
export interface Attempt {
  readonly address: string;
  readonly caLabel: string;
  readonly now: number;
}

/**
 * Continues as the account that was found for a name: its lockout and its limits apply, and a failure counts on it
 * instead of the typed name.
 * @throws EstuaryError as {@link GuardedAttempts.run}
 */
export type AsAccount = <T>(account: string, prove: () => Promise<T>) => Promise<T>;

/** Attempts per lockout key: running and waiting. */
const PER_KEY = { concurrency: 4, queue: 12 };
/** Attempts in total, so that a slow directory leaves capacity for other methods. */
const MAX_ATTEMPTS = 64;

export class GuardedAttempts {
  readonly #options: GuardOptions;
  readonly #limiter: AttemptLimiter;
  /** Per account. No attempt waits there, because it has a connection open. */
  readonly #accounts: AttemptLimiter;
  #underWay = 0;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#limiter = new AttemptLimiter(PER_KEY, options.retryAfter);
    this.#accounts = new AttemptLimiter({ ...PER_KEY, queue: 0 }, options.retryAfter);
  }

  /**
   * Checks the lockout, then the credential. A failure counts toward the lockout. A success clears nothing: otherwise
   * the holder of one account could guess others indefinitely.
   * @param name the claimed name
   * @param check throws {@link CredentialRefused}; other errors do not count
   * @throws EstuaryError 401 `LDAP_INVALID`, `JWT_INVALID`, `LOCKED_OUT`; 503 `PASSWORD_CHECK_BUSY`
   */
  async run<T>(
    name: string,
    attempt: Attempt,
    check: (keys: readonly string[], as: AsAccount) => Promise<T>,
  ): Promise<T> {
    const { lockout, method, tokenLength, retryAfter } = this.#options;
    const { address, now } = attempt;
    const subject = presentableName(name, tokenLength);
    const keysOf = (username: string): readonly string[] =>
      lockout.keys(address, { kind: 'username', name: lockoutName(username, tokenLength) });
    const typed = keysOf(name);
    let keys = typed;
    const as: AsAccount = async (account, prove) => {
      keys = keysOf(account);
      const others = keys.filter((key) => !typed.includes(key));
      if (others.length > 0) await lockout.check(others, now, event);
      return this.#accounts.run(others, prove);
    };
    const event = failureEvent(attempt, subject, method);
    await lockout.check(keys, now, event);
    if (this.#underWay >= MAX_ATTEMPTS)
      throw passwordCheckBusy(retryAfter, `${MAX_ATTEMPTS} attempts are already in progress`);
    this.#underWay += 1;
    try {
      return await this.#limiter.run(typed, async (waited) => {
        if (waited) await lockout.check(keys, now, event);
        const result = await refusalOr(() => check(keys, as));
        // Concurrent attempts may have failed meanwhile.
        await lockout.check(keys, now, event);
        if (!(result instanceof CredentialRefused)) return result;
        await lockout.countFailure(keys, now, { ...event, detail: result.message });
        throw credentialInvalid(method, result.message);
      });
    } finally {
      this.#underWay -= 1;
    }
  }
}

async function refusalOr<T>(check: () => Promise<T>): Promise<T | CredentialRefused> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof CredentialRefused) return error;
    throw error;
  }
}

export function failureEvent({ address, caLabel }: Attempt, subject: string, method: PasswordMethod): AuditEvent {
  return { type: `auth.${method}`, outcome: 'failure', subject, address, ca: caLabel, ...requestIdField() };
}

/** The method's 401 for a wrong credential. */
export function credentialInvalid(method: PasswordMethod, detail: string): EstuaryError {
  switch (method) {
    case 'otp':
      return unauthorized('OTP_INVALID', 'invalid OTP token', { detail });
    case 'ldap':
      return unauthorized('LDAP_INVALID', 'invalid username or password', { detail });
    case 'jwt':
      return unauthorized('JWT_INVALID', 'invalid bearer token', { detail });
  }
}
