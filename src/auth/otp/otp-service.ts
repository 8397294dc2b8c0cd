/** Creates and checks one-time passwords. Their use is recorded with the reservation. */
import { randomUUID } from 'node:crypto';

import { tokenEvent } from '../../audit/applied-events.ts';
import type { AuditEvent } from '../../audit/event.ts';
import type { EstuaryError } from '../../errors.ts';
import type { AuditStore } from '../../store/audit-store.ts';
import type { LockoutStore } from '../../store/lockout-store.ts';
import type { OtpRow, OtpStore } from '../../store/otp-store.ts';
import { tokenLookup } from '../../store/lookup-key-file.ts';
import type { FailureRecords } from '../failure-records.ts';
import { type Attempt, credentialInvalid, failureEvent } from '../guarded-attempts.ts';
import { tokenMethod, tokenOf, type Identity, type OtpIdentity } from '../identity.ts';
import type { PasswordCredentials, PresentedCredentials } from '../identity.ts';
import { Lockout, lockoutName, presentableName, type LockoutSettings } from '../lockout.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import type { FairLimiter } from '../../process/fair-limiter.ts';
import { isBasic, parseBasic } from './basic.ts';
import { AttemptLimiter, type HashingPool, passwordLimiter } from './hashing-pool.ts';
import { generateToken, type HashSettings, isTokenLike, TokenHasher } from './token-hasher.ts';
import { requestIdField } from '../../request-context.ts';

export interface OtpSettings extends HashSettings, LockoutSettings {
  readonly token_length: number;
  /** Key of the HMAC that finds a token's row. */
  readonly lookupKey: Buffer;
}

/** A checked order of an administrator, with defaults applied. */
export interface OtpOrder {
  readonly client_id: string;
  readonly max_uses: number;
  readonly expires_at: number;
  /** The label that the token is limited to. */
  readonly ca: string | null;
}

/** Attempts that may wait per address or name. */
const WAITING_PER_KEY = 256;

export class OtpService {
  readonly #store: OtpStore;
  readonly #settings: OtpSettings;
  readonly #hasher: TokenHasher;
  readonly #pool: HashingPool;
  /** Limits hashing of new tokens, so that one permit stays free for checks. */
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

  static async create(
    store: AuditStore & LockoutStore & OtpStore,
    settings: OtpSettings,
    pool: HashingPool,
    now: () => number = Date.now,
  ): Promise<OtpService> {
    return new OtpService(store, settings, await TokenHasher.create(settings), pool, now);
  }

  /**
   * Creates a token, which only the response contains.
   * @param events committed with the token and its `otp.created`, which takes the first one's address
   * @throws EstuaryError 500 or 503 from the store
   */
  async create(order: OtpOrder, events: readonly AuditEvent[]): Promise<{ row: OtpRow; token: string }> {
    // Before the slow hash: the token's lifetime starts with the order.
    const created_at = this.#now();
    const token = generateToken(this.#settings.token_length);
    const hash = await this.#hashNew(token);
    const lookup = tokenLookup(this.#settings.lookupKey, token);
    const row: OtpRow = { ...order, id: randomUUID(), lookup, hash, created_at, uses: 0, revoked_at: null };
    await this.#store.insertOtp(row, [...events, createdEvent(row, events[0]?.address)]);
    return { row, token };
  }

  /** Estimated milliseconds for hashing this many tokens, measured at full concurrency. */
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
   * Checks a token: lockout first, then one hash, then its state. The time of a failure reveals neither existence nor
   * state.
   *
   * A used-up or dead token authenticates with `usable: false` (see {@link UsedToken.usable}) and does not count as a
   * failure here. A valid token does not clear failures here: otherwise its holder could guess others indefinitely. Few
   * attempts per lockout key run concurrently, and the lockout is checked again after every wait and before the
   * response, so parallel attempts gain only those few guesses.
   * @param credentials undefined: the header was malformed, which counts as a failure
   * @throws EstuaryError 401 `invalid OTP token` or `too many failures, locked out`; 503 if too many are waiting
   */
  async authenticate(credentials: PasswordCredentials | undefined, attempt: Attempt): Promise<OtpIdentity> {
    const { username = '' } = credentials ?? {};
    const { token_length } = this.#settings;
    const keys = this.lockout.keys(attempt.address, { kind: 'username', name: lockoutName(username, token_length) });
    const event = failureEvent(attempt, presentableName(username, token_length), 'otp');
    // Otherwise the check does not wait, and its own look at the lockout suffices.
    if (this.#attempts.isBusy(keys)) await this.lockout.check(keys, attempt.now, event);
    return this.#attempts.run(keys, () => this.#check(credentials?.password ?? '', attempt, keys, event));
  }

  /** Hashes another secret like a token. @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` */
  hashSecret(secret: string): Promise<string> {
    return this.#pool.run(() => this.#hasher.hash(secret));
  }

  /** @throws EstuaryError 503 `PASSWORD_CHECK_BUSY` */
  verifySecret(hash: string, secret: string): Promise<boolean> {
    return this.#pool.run(() => this.#hasher.verify(hash, secret));
  }

  async #check(password: string, attempt: Attempt, keys: readonly string[], event: AuditEvent): Promise<OtpIdentity> {
    const check = (): Promise<void> => this.lockout.check(keys, attempt.now, event);
    const isToken = isTokenLike(password);
    const found = isToken ? this.#store.findOtp(tokenLookup(this.#settings.lookupKey, password)) : undefined;
    // One message to the store for both; a cheap hash does not require another lockout check.
    const [row] = await Promise.all([found, check()]);
    if (!isToken) throw await this.#refuse(keys, attempt, event, 'not in the format of a token');
    const matches = await this.#verify(row?.hash, password, check);
    if (this.#hasher.isExpensive(row?.hash)) await check();

    if (row === undefined || !matches) throw await this.#refuse(keys, attempt, event, 'unknown token');
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
   * Rejects a used-up or dead token with a request other than its own; counts as a failure.
   * @throws EstuaryError 401 always; 500 or 503 from the store
   */
  async refuseUnusable(identity: Identity, attempt: Attempt): Promise<never> {
    const method = tokenMethod(identity);
    const event = failureEvent(attempt, identity.display, method);
    const keys = tokenOf(identity)?.lockoutKeys ?? [];
    throw await this.#refuse(keys, attempt, event, whyUnusable(identity), method);
  }

  /**
   * Rejects such a token with its own request if that can no longer be answered; not a failure, since nobody guesses.
   * @param failures limits the records per address, since no lockout applies
   * @throws EstuaryError 401 always; 500 or 503 from the store
   */
  async refuseRepeat(identity: Identity, attempt: Attempt, failures: Pick<FailureRecords, 'record'>): Promise<never> {
    const method = tokenMethod(identity);
    const detail = `${whyUnusable(identity)}; not counted, because the request repeats the one that it was used for`;
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
    { now }: Attempt,
    event: AuditEvent,
    detail: string,
    method: 'otp' | 'jwt' = 'otp',
  ): Promise<EstuaryError> {
    await this.lockout.countFailure(keys, now, { ...event, detail });
    return credentialInvalid(method, detail);
  }
}

/** New tokens hashed concurrently. */
const makingAtOnce = ({ options }: HashingPool): number => Math.max(1, options.concurrency - 1);

/** Why an existing token no longer authenticates (expired or revoked); a used-up one is not dead. */
function whyDead(row: OtpRow, now: number): string | undefined {
  if (row.revoked_at !== null) return 'is revoked';
  return row.expires_at <= now ? 'has expired' : undefined;
}

function whyUnusable(identity: Identity): string {
  const { otp_id = '', dead = 'is used up' } = tokenOf(identity) ?? {};
  return `token ${otp_id} ${dead}`;
}

function createdEvent(token: OtpRow, address: string | undefined): AuditEvent {
  const by = { ...(address === undefined ? {} : { address }), ...requestIdField() };
  return tokenEvent({ type: 'otp.created', token }, by, `, uses: ${token.max_uses}`);
}

/** Authenticates EST requests by one-time password, in HTTP Basic or in the request (RFC 7894). */
export class OtpPlugin implements AuthPlugin {
  readonly method = 'otp';
  /** A failure is committed together with its count. */
  readonly auditsFailures = true;
  readonly #service: OtpService;

  constructor(service: OtpService) {
    this.#service = service;
  }

  async authenticate(
    { authorization, address, otpChallenge }: PresentedCredentials,
    context: AuthContext,
  ): Promise<OtpIdentity | undefined> {
    const attempt = { ...context, address };
    if (isBasic(authorization)) return this.#service.authenticate(parseBasic(authorization), attempt);
    const challenge = await otpChallenge?.();
    return challenge === undefined ? undefined : this.#service.authenticate(challenge, attempt);
  }
}
