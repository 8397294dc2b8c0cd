/** One-time passwords: making them, checking them. Their use is taken elsewhere, with the reservation. */
import { randomUUID } from 'node:crypto';

import { tokenEvent } from '../../audit/applied-events.ts';
import type { AuditEvent } from '../../audit/event.ts';
import type { EstuaryError } from '../../errors.ts';
import type { AuditStore } from '../../store/audit-store.ts';
import type { LockoutStore } from '../../store/lockout-store.ts';
import type { OtpRow, OtpStore } from '../../store/otp-store.ts';
import { tokenLookup } from '../../store/lookup-key-file.ts';
import type { FailureRecords } from '../failure-records.ts';
import { credentialInvalid } from '../guarded-attempts.ts';
import { tokenMethod, tokenOf, type Identity, type OtpIdentity } from '../identity.ts';
import { Lockout, presentableName, type LockoutSettings } from '../lockout.ts';
import type { BasicCredentials } from './basic.ts';
import type { FairLimiter } from '../../process/fair-limiter.ts';
import { AttemptLimiter, type HashingPool, passwordLimiter } from './hashing-pool.ts';
import { generateToken, type HashSettings, isTokenLike, TokenHasher } from './token-hasher.ts';
import { requestIdField } from '../../request-context.ts';

export interface OtpSettings extends HashSettings, LockoutSettings {
  readonly token_length: number;
  /** Of the keyed hash that finds a token's row. */
  readonly lookupKey: Buffer;
}

/** What an administrator asked for, with defaults filled in and everything checked. */
export interface OtpOrder {
  readonly client_id: string;
  readonly max_uses: number;
  /** Milliseconds. */
  readonly expires_at: number;
  /** The label that the token is limited to. */
  readonly ca: string | null;
}

/** Where an attempt comes from and what it is for. */
export interface OtpAttempt {
  readonly address: string;
  readonly caLabel: string;
  /** Milliseconds. */
  readonly now: number;
}

/** Attempts that may wait for others of the same address or name. */
const WAITING_PER_KEY = 256;

export class OtpService {
  readonly #store: OtpStore;
  readonly #settings: OtpSettings;
  readonly #hasher: TokenHasher;
  readonly #pool: HashingPool;
  /** New tokens that are being hashed: one place stays free for those that are checked. */
  readonly #making: FairLimiter;
  readonly #attempts: AttemptLimiter;
  readonly #now: () => number;
  readonly lockout: Lockout;

  private constructor(
    store: AuditStore & LockoutStore & OtpStore,
    settings: OtpSettings,
    hasher: TokenHasher,
    pool: HashingPool,
    now: () => number,
  ) {
    this.#store = store;
    this.#settings = settings;
    this.#hasher = hasher;
    this.#pool = pool;
    const { concurrency, retryAfter } = pool.options;
    this.#making = passwordLimiter({ concurrency: makingAtOnce(pool), queue: Infinity }, retryAfter);
    this.#attempts = new AttemptLimiter({ concurrency, queue: WAITING_PER_KEY }, retryAfter);
    this.#now = now;
    this.lockout = new Lockout(store, settings);
  }

  /** @throws EstuaryError 500 `OTP_HMAC_KEY_MISSING` */
  static async create(
    store: AuditStore & LockoutStore & OtpStore,
    settings: OtpSettings,
    pool: HashingPool,
    now: () => number = Date.now,
  ): Promise<OtpService> {
    return new OtpService(store, settings, await TokenHasher.create(settings), pool, now);
  }

  /**
   * Makes a token. It is in the answer and nowhere else.
   *
   * @param events committed together with the token and its own `otp.created`; the first one's address is its too
   * @throws EstuaryError 500 or 503 from the store
   */
  async create(order: OtpOrder, events: readonly AuditEvent[]): Promise<{ row: OtpRow; token: string }> {
    // Before the hash, which takes a while: the life of the token counts from when it was ordered.
    const created_at = this.#now();
    const token = generateToken(this.#settings.token_length);
    const hash = await this.#hashNew(token);
    const lookup = tokenLookup(this.#settings.lookupKey, token);
    const row: OtpRow = { ...order, id: randomUUID(), lookup, hash, created_at, uses: 0, revoked_at: null };
    await this.#store.insertOtp(row, [...events, createdEvent(row, events[0]?.address)]);
    return { row, token };
  }

  /** Milliseconds that the hashes of so many tokens take: measured with as many hashes as run at a time. */
  async estimate(tokens: number): Promise<number> {
    const together = Math.min(tokens, makingAtOnce(this.#pool));
    if (together === 0) return 0;
    const began = performance.now();
    await Promise.all(
      Array.from({ length: together }, () => this.#hashNew(generateToken(this.#settings.token_length))),
    );
    return ((performance.now() - began) * tokens) / together;
  }

  #hashNew(token: string): Promise<string> {
    return this.#making.run(() => this.#pool.run(() => this.#hasher.hash(token), { urgent: true }));
  }

  /**
   * Checks a token: lockout first, then one hash, then its state. The time of a failure does not tell whether there
   * is such a token, nor in which state it is.
   *
   * A consumed token, and a dead one, authenticate with `usable: false`, see {@link UsedToken.usable}, and add nothing to the count
   * of failures here. No token clears it here: that would let the holder of one guess others for ever, with requests that
   * take no use. Of one lockout key, a few attempts are under way at a time, and the lockout is asked
   * again after every wait and before an answer is given: parallel attempts get no more guesses than attempts in a
   * row, but for those few.
   *
   * @param credentials undefined: the header was malformed, which counts as a failure
   * @throws EstuaryError 401 `invalid OTP token` or `too many failures, locked out`; 503 when too many are waiting
   */
  async authenticate(credentials: BasicCredentials | undefined, attempt: OtpAttempt): Promise<OtpIdentity> {
    const username = presentableName(credentials?.username ?? '', this.#settings.token_length);
    const keys = this.lockout.keys(attempt.address, { kind: 'username', name: username });
    const event = failureEvent(attempt, username);
    await this.lockout.check(keys, attempt.now, event);

    return this.#attempts.run(keys, async (waited) => {
      if (waited) await this.lockout.check(keys, attempt.now, event);
      return this.#check(credentials?.password ?? '', attempt, keys, event);
    });
  }

  /**
   * The hash of another secret than a token, as tokens are hashed: for who has to know it again.
   *
   * @throws EstuaryError 503 `PASSWORD_CHECK_BUSY`
   */
  hashSecret(secret: string): Promise<string> {
    return this.#pool.run(() => this.#hasher.hash(secret));
  }

  /** Whether the hash is this secret's. @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` */
  verifySecret(hash: string, secret: string): Promise<boolean> {
    return this.#pool.run(() => this.#hasher.verify(hash, secret));
  }

  async #check(
    password: string,
    attempt: OtpAttempt,
    keys: readonly string[],
    event: AuditEvent,
  ): Promise<OtpIdentity> {
    if (!isTokenLike(password)) throw await this.#refuse(keys, attempt, event, 'not of the form of a token');
    const { lookupKey } = this.#settings;
    const check = (): Promise<void> => this.lockout.check(keys, attempt.now, event);
    // Together, which is one message to the store; a cheap hash is no wait after which to ask again.
    const [row] = await Promise.all([this.#store.findOtp(tokenLookup(lookupKey, password)), check()]);
    const matches = await this.#verify(row?.hash, password, check);
    if (this.#hasher.isExpensive(row?.hash)) await check();

    if (row === undefined || !matches) throw await this.#refuse(keys, attempt, event, 'no such token');
    if (row.ca !== null && row.ca !== attempt.caLabel)
      throw await this.#refuse(
        keys,
        attempt,
        { ...event, subject: row.client_id },
        `token ${row.id} is for the CA ${row.ca}`,
      );
    const dead = whyDead(row, attempt.now);
    return {
      method: 'otp',
      requester: `otp:${row.id}`,
      display: row.client_id,
      otp_id: row.id,
      client_id: row.client_id,
      password: Buffer.from(password),
      usable: dead === undefined && row.uses < row.max_uses,
      dead,
      lockoutKeys: keys,
    };
  }

  /**
   * The answer to a consumed or dead token that comes with another request than the one it was used for: a failure like any other.
   *
   * @throws EstuaryError 401 always; 500 or 503 from the store
   */
  async refuseUnusable(identity: Identity, attempt: OtpAttempt): Promise<never> {
    const method = tokenMethod(identity);
    const event = failureEvent(attempt, identity.display, method);
    const keys = tokenOf(identity)?.lockoutKeys ?? [];
    throw await this.#refuse(keys, attempt, event, whyUnusable(identity), method);
  }

  /**
   * The answer to one that comes with that request again, when it cannot be answered (any more): nobody guesses, so it is no failure.
   *
   * @param failures bounds the records of one address: no lockout ends such requests
   * @throws EstuaryError 401 always; 500 or 503 from the store
   */
  async refuseRepeat(
    identity: Identity,
    attempt: OtpAttempt,
    failures: Pick<FailureRecords, 'record'>,
  ): Promise<never> {
    const method = tokenMethod(identity);
    const detail = `${whyUnusable(identity)}; the request that it was used for, so not counted`;
    await failures.record({ ...failureEvent(attempt, identity.display, method), detail });
    throw credentialInvalid(method, detail);
  }

  async #verify(hash: string | undefined, password: string, recheck: () => Promise<void>): Promise<boolean> {
    if (!this.#hasher.isExpensive(hash)) return this.#hasher.verify(hash, password);
    return this.#pool.run(async (waited) => {
      if (waited) await recheck();
      return this.#hasher.verify(hash, password);
    });
  }

  async #refuse(
    keys: readonly string[],
    { now }: OtpAttempt,
    event: AuditEvent,
    detail: string,
    method: 'otp' | 'jwt' = 'otp',
  ): Promise<EstuaryError> {
    await this.lockout.countFailure(keys, now, { ...event, detail });
    return credentialInvalid(method, detail);
  }
}

/** New tokens that are hashed at a time. */
const makingAtOnce = ({ options }: HashingPool): number => Math.max(1, options.concurrency - 1);

/** Why a token that exists authenticates nobody any more, or undefined. Having no use left is not among it. */
function whyDead(row: OtpRow, now: number): string | undefined {
  if (row.revoked_at !== null) return 'is revoked';
  return row.expires_at <= now ? 'has expired' : undefined;
}

function whyUnusable(identity: Identity): string {
  const { otp_id = '', dead = 'has no use left' } = tokenOf(identity) ?? {};
  return `token ${otp_id} ${dead}`;
}

function createdEvent(token: OtpRow, address: string | undefined): AuditEvent {
  const by = { ...(address === undefined ? {} : { address }), ...requestIdField() };
  return tokenEvent({ type: 'otp.created', token }, by, `, uses: ${token.max_uses}`);
}

function failureEvent({ address, caLabel }: OtpAttempt, subject: string, method: 'otp' | 'jwt' = 'otp'): AuditEvent {
  return { type: `auth.${method}`, outcome: 'failure', subject, address, ca: caLabel, ...requestIdField() };
}
