/** A CA key in a PKCS#11 token. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type EstuaryError, failed, unavailable } from '../../errors.ts';
import { type ChildCall, IsolatedProcess } from '../../process/isolated-process.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { isObject, IsolatedError, startedModule } from '../../process/protocol.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import type { SignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import type { CaDependency, HealthReport, Signer } from '../driver.ts';
import { PersistentStart } from '../persistent-start.ts';
import { logInOnce, rememberRejectedPin } from './logins.ts';
import {
  type FoundToken,
  isFoundToken,
  type KeyDescription,
  type KeyReference,
  moduleEnvironment,
  type NoSession,
  type SignerInit,
  type TokenAccess,
  TokenFault,
} from './wire.ts';

export interface Pkcs11SignerOptions extends TokenAccess, KeyReference {
  readonly max_sessions: number;
  /** Seconds per call to the token. */
  readonly timeout: number;
  /** DER SubjectPublicKeyInfo of the CA certificate, which the key must match; undefined: any key. */
  readonly expectedSpki?: Buffer | undefined;
  /** The module's environment: many find their configuration there (SOFTHSM2_CONF …). */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly retryAfter: number;
  readonly log: IsolatedLog;
  /** Receives what the module prints to stderr, line by line. */
  readonly onOutput?: (line: string) => void;
  /** Milliseconds; see {@link IsolatedProcess}. */
  readonly minBackoffMs?: number;
  readonly maxBackoffMs?: number;
}

const SUBJECT = 'The hardware security module';
/** Signatures that may wait per session. */
const QUEUE_PER_SESSION = 64;
/** Attempts to find a missing token at start, and milliseconds between them. */
const LOOKS = 4;
const LOOK_AGAIN = 500;
/** Milliseconds that the server's start waits for the token. */
const PATIENCE = 10_000;
/** Milliseconds until a token that has no session at all is asked again, and until it may allow more than before. */
const SESSION_AGAIN = 100;
const MORE_SESSIONS = 30_000;
/** Failures of one signature that say nothing about the token. */
const HARMLESS = new Set([
  'CKR_FUNCTION_CANCELED',
  'CKR_DATA_INVALID',
  'CKR_DATA_LEN_RANGE',
  'CKR_MECHANISM_INVALID',
  'CKR_KEY_FUNCTION_NOT_PERMITTED',
  'CKR_KEY_TYPE_INCONSISTENT',
]);
/** The token or its key is gone, also for a new session; handles and login do not survive that. */
const GONE = new Set<string>([
  TokenFault.SLOT,
  TokenFault.SESSION,
  TokenFault.KEY,
  TokenFault.KEY_MISMATCH,
  'CKR_DEVICE_REMOVED',
  'CKR_TOKEN_NOT_PRESENT',
  'CKR_SLOT_ID_INVALID',
  'CKR_CRYPTOKI_NOT_INITIALIZED',
]);
/** Accepted logins for one call, of a token that loses them. */
const LOGINS = 10;
/** Signatures after a failed one. */
const PROBES = 3;

interface KnownKey {
  readonly spki: Buffer;
  readonly algorithm: SignatureAlgorithm;
}

export class Pkcs11Signer implements Signer {
  readonly dependency: CaDependency = { name: 'hsm', health: () => this.health() };
  readonly #options: Pkcs11SignerOptions;
  readonly #process: IsolatedProcess;
  readonly #deadlineMs: number;
  readonly #opening: PersistentStart;
  /** The expected key until the token returns it; undefined if unknown. */
  #key: KnownKey | undefined;
  #token: FoundToken | undefined;
  #warnings: readonly string[] = [];
  /** Sessions that the token says it allows. */
  #maximum: number;
  /** Fewer than {@link #maximum} after the token refused more, until `#moreAt`. */
  #sessions: number;
  #moreAt = Infinity;
  #probing: Promise<boolean> | undefined;
  /** A new process takes the place of one whose module is of no more use. */
  #replacing: Promise<boolean> | undefined;
  readonly #callChild: ChildCall = (method, args) => this.#process.call(method, args, { deadlineMs: this.#deadlineMs });

  /** Does not start the process. @throws IsolatedError `TokenFault.KEY` if the expected key's type cannot sign */
  constructor(options: Pkcs11SignerOptions) {
    this.#options = options;
    this.#process = this.#startable(options);
    this.#deadlineMs = options.timeout * 1000;
    this.#maximum = options.max_sessions;
    this.#sessions = options.max_sessions;
    this.#opening = new PersistentStart(() => this.start(), {
      what: SUBJECT.toLowerCase(),
      log: options.log,
      patience: PATIENCE,
      interval: options.maxBackoffMs,
    });
    this.#key = options.expectedSpki === undefined ? undefined : knownKey(options.expectedSpki);
  }

  /** @throws EstuaryError 500 before the start, unless a key is expected */
  get spki(): Buffer {
    return this.#known.spki;
  }

  /** @throws EstuaryError as {@link spki} */
  get signatureAlgorithm(): Buffer {
    return this.#known.algorithm.der;
  }

  get concurrency(): number {
    return this.#sessions;
  }

  get #known(): KnownKey {
    if (this.#key === undefined) throw failed('PKCS11_FAILED', `${SUBJECT} failed.`, { detail: 'it is not started' });
    return this.#key;
  }

  /**
   * Starts the token's process, finds the key and proves it with a signature. Logs warnings. May be called again after
   * a failure.
   * @throws IsolatedError with a {@link TokenFault} code; EstuaryError if the module crashed or hung. Leaves nothing
   * running
   */
  async start(): Promise<void> {
    await this.#startProcess();
    for (const warning of this.#warnings) this.#options.log.warn({ process: 'PKCS11' }, `${SUBJECT}: ${warning}`);
  }

  /**
   * Retries for a missing token: at each login SoftHSM truncates a token's file before it writes it again, and another
   * process that loads the module at that moment sees no token. And a session may be free soon.
   */
  async #startProcess(): Promise<void> {
    for (let look = 1; ; look++)
      try {
        await this.#process.start();
        return;
      } catch (error) {
        const mayCome =
          error instanceof IsolatedError && (error.code === TokenFault.SLOT || error.code === TokenFault.SESSION);
        if (look === LOOKS || !mayCome) throw error;
        await sleep(LOOK_AGAIN);
      }
  }

  /** {@link start} that is repeated until it succeeds. Never rejects: {@link requireUp} says why it does not work. */
  keepStarting(): Promise<void> {
    return this.#opening.start();
  }

  requireUp(): void {
    const detail = this.#opening.problem;
    if (detail === undefined) {
      if (this.#replacing === undefined) this.#process.requireUp();
    } else
      throw unavailable('PKCS11_DOWN', `${SUBJECT} is temporarily unavailable.`, {
        detail,
        retryAfter: this.#options.retryAfter,
      });
  }

  /** It was started, and will sign again if its token is away for a moment. */
  get isOpen(): boolean {
    return this.#process.state !== 'stopped' && !this.#process.hasGivenUp;
  }

  /** Process ID of the child that holds the module, if running. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** @throws EstuaryError 500 if the signature failed, 503 while the token is down or all sessions are busy */
  async sign(tbs: Buffer): Promise<Buffer> {
    const signature = await this.#call('sign', tbs);
    if (!(signature instanceof Uint8Array)) throw failed('PKCS11_FAILED', `${SUBJECT} failed.`);
    return Buffer.from(signature);
  }

  async health(): Promise<HealthReport> {
    const detail = this.#opening.problem;
    if (detail !== undefined) return { health: 'down', detail };
    try {
      await this.#call('check', undefined);
      return { health: 'ok' };
    } catch (error) {
      // Being busy is no reason to direct clients to other servers.
      return { health: this.#process.state === 'up' ? 'degraded' : 'down', detail: describe(error) };
    }
  }

  close(): Promise<void> {
    this.#opening.stop();
    return this.#process.stop();
  }

  async #call(method: 'sign' | 'check', args: unknown): Promise<unknown> {
    const until = performance.now() + this.#deadlineMs;
    if (performance.now() > this.#moreAt) this.#allow(this.#maximum);
    for (;;) {
      const result = await this.#tryCall(method, args);
      if (!isNoSession(result)) return result;
      this.#allow(Math.max(1, result.sessions));
      if (performance.now() > until) throw this.#busy(`${method}: CKR_SESSION_COUNT`);
      // Another process has the token's sessions.
      if (result.sessions === 0) await sleep(SESSION_AGAIN);
    }
  }

  /** Some modules lose an idle connection for good, until they are initialized again: a call is made once more then. */
  async #tryCall(method: 'sign' | 'check', args: unknown, isAgain = false): Promise<unknown> {
    try {
      return await this.#withLogin(this.#callChild, method, args);
    } catch (error) {
      const detail = `${method}: ${describe(error)}`;
      const isNew = error instanceof IsolatedError ? this.#afterFailure(error, detail) : this.#replacing;
      if (!isAgain && (await isNew) === true) return this.#tryCall(method, args, true);
      await isNew;
      throw error instanceof IsolatedError ? failed('PKCS11_FAILED', `${SUBJECT} failed.`, { detail }) : error;
    }
  }

  /** @returns whether a new process is up */
  async #afterFailure({ code, permanent }: IsolatedError, detail: string): Promise<boolean> {
    if (permanent) this.#process.giveUp(detail);
    else if (GONE.has(code)) return this.#replace(detail);
    else if (!HARMLESS.has(code))
      return (this.#probing ??= this.#probe(detail).finally(() => (this.#probing = undefined)));
    return false;
  }

  /** Finds out with further signatures whether only one failed, or every one does, which needs a new process. */
  async #probe(detail: string): Promise<boolean> {
    for (let n = 0; n < PROBES; n++)
      try {
        await this.#withLogin(this.#callChild, 'sign', randomBytes(32));
        return false;
      } catch (error) {
        // Being busy or down says nothing more.
        if (!(error instanceof IsolatedError)) return false;
      }
    return this.#replace(detail);
  }

  #replace(detail: string): Promise<boolean> {
    return (this.#replacing ??= this.#process.restart(detail).finally(() => (this.#replacing = undefined)));
  }

  /** A call that may need a login first, which must not be repeated with a rejected PIN. An accepted one may be lost again. */
  async #withLogin(call: ChildCall, method: string, args?: unknown): Promise<unknown> {
    for (let logins = 0; ; logins++)
      try {
        return await call(method, args);
      } catch (error) {
        const code = error instanceof IsolatedError ? error.code : undefined;
        if (code === TokenFault.PIN) rememberRejectedPin(this.#token, this.#options.pin, describe(error));
        if (code !== TokenFault.LOGIN || logins === LOGINS) throw error;
        await this.#logIn(call);
      }
  }

  async #logIn(call: ChildCall): Promise<void> {
    if (this.#token === undefined) throw new TypeError('no token yet');
    await logInOnce(this.#token, this.#options.pin, async () => {
      if (isNoSession(await call('logIn'))) throw noSession();
    });
  }

  /** After each start of the process. */
  async #open(call: ChildCall, found: unknown): Promise<void> {
    if (!isFoundToken(found)) throw new TypeError('not a token');
    this.#token = found;
    const description = await this.#withLogin(call, 'open');
    if (isNoSession(description)) throw noSession();
    const { spki, sessions, warnings } = readDescription(description);
    this.#key = knownKey(spki);
    this.#warnings = warnings;
    this.#maximum = sessions;
    this.#allow(sessions);
  }

  #allow(sessions: number): void {
    this.#sessions = sessions;
    this.#moreAt = sessions < this.#maximum ? performance.now() + MORE_SESSIONS : Infinity;
    this.#process.limit(sessions);
  }

  #busy(detail: string): EstuaryError {
    const { retryAfter } = this.#options;
    return unavailable('PKCS11_BUSY', `${SUBJECT} has no session left.`, { detail, retryAfter });
  }

  #startable(options: Pkcs11SignerOptions): IsolatedProcess {
    const { env, log, timeout, retryAfter, minBackoffMs, maxBackoffMs, onOutput, ...init } = options;
    const { max_sessions, pin } = init;
    return new IsolatedProcess({
      module: startedModule('ca/pkcs11/pkcs11-child'),
      code: 'PKCS11',
      subject: SUBJECT,
      env: { ...moduleEnvironment(env), UV_THREADPOOL_SIZE: String(Math.max(4, max_sessions)) },
      init: init satisfies SignerInit,
      opened: (call, found) => this.#open(call, found),
      // Time to fork, to load, and for a few calls to the token.
      startTimeoutMs: 10_000 + timeout * 2000,
      concurrency: max_sessions,
      queueLimit: max_sessions * QUEUE_PER_SESSION,
      retryAfter,
      log,
      secret: pin,
      ...(onOutput === undefined ? {} : { onOutput }),
      ...(minBackoffMs === undefined ? {} : { minBackoffMs }),
      ...(maxBackoffMs === undefined ? {} : { maxBackoffMs }),
    });
  }
}

const noSession = (): IsolatedError =>
  new IsolatedError(TokenFault.SESSION, 'the token has no free session (CKR_SESSION_COUNT)');

function knownKey(spki: Buffer): KnownKey {
  const algorithm = defaultSignatureAlgorithm(parsePublicKey(spki).keyType);
  if (algorithm === undefined) throw new IsolatedError(TokenFault.KEY, 'a key of this type is not supported');
  return { spki, algorithm };
}

/** The child is the same program, so what it returns has one of these shapes. */
const isNoSession = (value: unknown): value is NoSession =>
  isObject(value) && typeof value['sessions'] === 'number' && !('spki' in value);

function readDescription(value: unknown): KeyDescription & { readonly spki: Buffer } {
  if (!isObject(value)) throw new TypeError('not a key description');
  const { spki, sessions, warnings } = value;
  if (!(spki instanceof Uint8Array) || typeof sessions !== 'number' || !Array.isArray(warnings))
    throw new TypeError('not a key description');
  return { spki: Buffer.from(spki), sessions, warnings: warnings.map(String) };
}
