/** A CA key in a PKCS#11 token. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, failed, unavailable } from '../../errors.ts';
import { IsolatedProcess } from '../../process/isolated-process.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { IsolatedError, startedModule } from '../../process/protocol.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm, verifySignature } from '../../pki/x509/signature-algorithms.ts';
import type { SignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import type { CaDependency, HealthReport, Signer } from '../driver.ts';
import { type KeyReference, moduleEnvironment, type SignerInit, type TokenAccess, TokenFault } from './wire.ts';

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
/** Failures of one signature that do not affect the token's other sessions. */
const HARMLESS = new Set([
  'CKR_SESSION_COUNT',
  'CKR_FUNCTION_CANCELED',
  'CKR_DATA_INVALID',
  'CKR_DATA_LEN_RANGE',
  'CKR_MECHANISM_INVALID',
  'CKR_KEY_FUNCTION_NOT_PERMITTED',
  'CKR_KEY_TYPE_INCONSISTENT',
]);

interface KnownKey {
  readonly spki: Buffer;
  readonly algorithm: SignatureAlgorithm;
}

export class Pkcs11Signer implements Signer {
  readonly dependency: CaDependency = { name: 'hsm', health: () => this.health() };
  readonly concurrency: number;
  readonly #log: IsolatedLog;
  readonly #process: IsolatedProcess;
  readonly #deadline: { readonly deadlineMs: number };
  readonly #retryAfter: number;
  /** The expected key until the token returns it; undefined if unknown. */
  #key: KnownKey | undefined;

  /** Does not start the process. @throws IsolatedError `TokenFault.KEY` if the expected key's type cannot sign */
  constructor(options: Pkcs11SignerOptions) {
    this.#process = startable(options);
    this.#deadline = { deadlineMs: options.timeout * 1000 };
    this.#retryAfter = options.retryAfter;
    this.#log = options.log;
    this.concurrency = options.max_sessions;
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

  get #known(): KnownKey {
    if (this.#key === undefined) throw failed('PKCS11_FAILED', `${SUBJECT} failed.`, { detail: 'it is not started' });
    return this.#key;
  }

  /**
   * Starts the token's process, finds the key and proves it with a signature. Logs warnings.
   * @throws IsolatedError with a {@link TokenFault} code; EstuaryError if the module crashed or hung. Leaves nothing
   * running
   */
  async start(): Promise<void> {
    await this.#startProcess();
    try {
      const { spki, warnings } = readDescription(await this.#process.call('describe', undefined, this.#deadline));
      this.#key = knownKey(spki);
      await this.#prove(this.#key);
      for (const warning of warnings) this.#log.warn({ process: 'PKCS11' }, `${SUBJECT}: ${warning}`);
    } catch (error) {
      await this.#process.stop();
      throw error;
    }
  }

  /**
   * Retries for a missing token: at each login SoftHSM truncates a token's file before it writes it again, and another
   * process that loads the module at that moment sees no token.
   */
  async #startProcess(): Promise<void> {
    for (let look = 1; ; look++)
      try {
        await this.#process.start();
        return;
      } catch (error) {
        if (look === LOOKS || !(error instanceof IsolatedError) || error.code !== TokenFault.SLOT) throw error;
        await sleep(LOOK_AGAIN);
      }
  }

  /** The token refused an operation that would be repeated: create a new signer. */
  get hasGivenUp(): boolean {
    return this.#process.hasGivenUp;
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
    try {
      await this.#call('check', undefined);
      return { health: 'ok' };
    } catch (error) {
      // Being busy is no reason to direct clients to other servers.
      return { health: this.#process.state === 'up' ? 'degraded' : 'down', detail: describe(error) };
    }
  }

  close(): Promise<void> {
    return this.#process.stop();
  }

  async #call(method: string, args: unknown): Promise<unknown> {
    try {
      return await this.#process.call(method, args, this.#deadline);
    } catch (error) {
      if (!(error instanceof IsolatedError)) throw error;
      const detail = `${method}: ${error.message}`;
      if (error.code === 'CKR_SESSION_COUNT')
        throw unavailable('PKCS11_BUSY', `${SUBJECT} has no session left.`, { detail, retryAfter: this.#retryAfter });
      // Handles and login do not survive a lost token; only a new process recovers.
      if (!HARMLESS.has(error.code)) this.#process.restart(detail);
      throw failed('PKCS11_FAILED', `${SUBJECT} failed.`, { detail });
    }
  }

  /** Signs a test value: the token's public half may be missing or wrong. */
  async #prove({ spki, algorithm }: KnownKey): Promise<void> {
    const probe = Buffer.concat([Buffer.from('estuary start-up check '), randomBytes(16)]);
    const signature = await this.sign(probe);
    if (!(await verifySignature(algorithm, parsePublicKey(spki), probe, signature)))
      throw new IsolatedError(TokenFault.KEY_MISMATCH, 'the private key does not belong to the CA certificate');
  }
}

function knownKey(spki: Buffer): KnownKey {
  const algorithm = defaultSignatureAlgorithm(parsePublicKey(spki).keyType);
  if (algorithm === undefined) throw new IsolatedError(TokenFault.KEY, 'a key of this type is not supported');
  return { spki, algorithm };
}

function startable(options: Pkcs11SignerOptions): IsolatedProcess {
  const { env, log, timeout, retryAfter, minBackoffMs, maxBackoffMs, ...init } = options;
  const { max_sessions } = init;
  return new IsolatedProcess({
    module: startedModule('ca/pkcs11/pkcs11-child'),
    code: 'PKCS11',
    subject: SUBJECT,
    env: { ...moduleEnvironment(env), UV_THREADPOOL_SIZE: String(Math.max(4, max_sessions)) },
    init: init satisfies SignerInit,
    // Time to fork, to load, and for a few calls to the token.
    startTimeoutMs: 10_000 + timeout * 2000,
    concurrency: max_sessions,
    queueLimit: max_sessions * QUEUE_PER_SESSION,
    retryAfter,
    log,
    ...(minBackoffMs === undefined ? {} : { minBackoffMs }),
    ...(maxBackoffMs === undefined ? {} : { maxBackoffMs }),
  });
}

function readDescription(value: unknown): { spki: Buffer; warnings: string[] } {
  if (typeof value !== 'object' || value === null || !('spki' in value) || !('warnings' in value))
    throw new TypeError('not a key description');
  const { spki, warnings } = value;
  if (!(spki instanceof Uint8Array) || !Array.isArray(warnings)) throw new TypeError('not a key description');
  return { spki: Buffer.from(spki), warnings: warnings.map(String) };
}
