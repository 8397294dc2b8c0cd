import { measured } from '../dependency-calls.ts';
import { failed, unavailable } from '../errors.ts';
import type { EstuaryError } from '../errors.ts';
import { ChildInstance } from './child-instance.ts';
import { INIT, IsolatedError } from './protocol.ts';
import { FairLimiter } from './fair-limiter.ts';

/** Log for lifecycle events, such as pino's. */
export type IsolatedLog = Readonly<Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>>;

/** A call outside the queue, during a start. */
export type ChildCall = (method: string, args?: unknown) => Promise<unknown>;

type IsolatedState = 'stopped' | 'starting' | 'up' | 'down';

/** Names in the metrics. */
const DEPENDENCIES = { PKCS11: 'hsm', GSSAPI: 'gssapi' } as const;

export interface IsolatedProcessOptions {
  /** The child's module, which calls `serve()`; from `startedModule()`. */
  readonly module: URL;
  /** Prefix of the error codes: `PKCS11` → `PKCS11_DOWN`, `PKCS11_BUSY`, `PKCS11_FAILED`, `PKCS11_TIMEOUT`. */
  readonly code: 'GSSAPI' | 'PKCS11';
  /** Subject of the public error messages, such as `the hardware security module`. */
  readonly subject: string;
  /** The child's whole environment. Pass secrets in `init`. */
  readonly env: Readonly<Record<string, string>>;
  /** Sent over IPC on every start. */
  readonly init: unknown;
  /** Further calls of every start, with what `init` returned. A rejection fails the start. */
  readonly opened?: (call: ChildCall, found: unknown) => Promise<void>;
  /** Receives each line that the child writes to stderr, without {@link secret}. */
  readonly onOutput?: (line: string) => void;
  readonly secret?: string | undefined;
  /** Maximum milliseconds for a start (fork and init). */
  readonly startTimeoutMs: number;
  /** Concurrent calls in the child; further ones wait in the parent. */
  readonly concurrency: number;
  /** Calls that may wait; further ones get 503. */
  readonly queueLimit: number;
  /** Seconds, for 503 responses. */
  readonly retryAfter: number;
  readonly log: IsolatedLog;
  /** Milliseconds before the first restart (100), doubled up to `maxBackoffMs` (5000). */
  readonly minBackoffMs?: number;
  readonly maxBackoffMs?: number;
}

/** Milliseconds for an orderly end after `stop()`. */
const STOP_GRACE_MS = 2000;
/** Milliseconds that a call may wait for the start of a new instance, and after which one may be replaced at once. */
const SOON_MS = 1000;
/** An instance that lived this long resets the back-off. */
const STABLE_AFTER_MS = 10_000;

/**
 * Runs a library that can block, crash or lose its state in a child process. If a call exceeds its deadline, the child
 * is killed and restarted, as after a crash. That costs only the calls in flight (500) and the calls until it is up
 * again (503).
 */
export class IsolatedProcess {
  readonly #options: IsolatedProcessOptions;
  readonly #limiter: FairLimiter;
  #state: IsolatedState = 'stopped';
  #current: ChildInstance | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  #backoffMs: number;
  #upSince = 0;
  #reason = 'not started';
  #hasGivenUp = false;
  /** Wait for the next start to end. */
  readonly #waiting: (() => void)[] = [];

  constructor(options: IsolatedProcessOptions) {
    this.#options = options;
    this.#limiter = new FairLimiter({
      concurrency: options.concurrency,
      queue: options.queueLimit,
      busy: (detail) => this.#unavailable('BUSY', `${options.subject} is processing too many requests`, detail),
    });
    this.#backoffMs = this.#minBackoffMs;
  }

  get state(): IsolatedState {
    return this.#state;
  }

  /** Why it is not up, for a health report. */
  get reason(): string {
    return this.#reason;
  }

  /** Down permanently: another start would fail. {@link start} may be called again. */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp;
  }

  /** The child's process ID, if running. */
  get pid(): number | undefined {
    return this.#current?.pid;
  }

  get #minBackoffMs(): number {
    return this.#options.minBackoffMs ?? 100;
  }

  /**
   * The first start, which is not retried, so that a server can refuse to start.
   * @throws IsolatedError from the child's `init`; EstuaryError if the child crashed or hung
   */
  async start(): Promise<void> {
    this.#hasGivenUp = false;
    try {
      await this.#launch();
    } catch (error) {
      await this.stop();
      this.#hasGivenUp = error instanceof IsolatedError && error.permanent;
      throw error;
    }
  }

  /**
   * Calls a method of the child. `args` and the result are structured clones; the caller checks the result.
   * `deadlineMs` bounds the wait for a permit and, separately, the call.
   * @throws IsolatedError from the method; EstuaryError 503 while down or busy, 500 if the child crashed or hung
   */
  async call(method: string, args: unknown, limits: { readonly deadlineMs: number }): Promise<unknown> {
    this.#requireUp();
    const work = (): Promise<unknown> => {
      const instance = this.#requireUp();
      const call = (): Promise<unknown> => instance.call(method, args, limits.deadlineMs);
      // A method that throws has responded.
      return measured(
        { dependency: DEPENDENCIES[this.#options.code] },
        call,
        (error) => error instanceof IsolatedError,
      );
    };
    return this.#limiter.run(work, { waitMs: limits.deadlineMs });
  }

  /** @throws EstuaryError 503 while it is not up */
  requireUp(): void {
    this.#requireUp();
  }

  /** Replaces the child: for library state that only a new process fixes. @returns whether the new one is up at once */
  async restart(reason: string): Promise<boolean> {
    if (this.#state === 'up' && performance.now() - this.#upSince > SOON_MS) this.#backoffMs = this.#minBackoffMs;
    const isSoon = this.#backoffMs <= SOON_MS;
    this.#current?.kill(reason);
    if (this.#state === 'stopped' || this.#hasGivenUp || !isSoon) return false;
    if (this.#state !== 'up') await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    return this.state === 'up';
  }

  /** Ends the child, and does not start it again: another start would fail, and may harm. */
  giveUp(reason: string): void {
    const { code, subject, log } = this.#options;
    if (this.#hasGivenUp || this.#state === 'stopped') return;
    const current = this.#current;
    this.#current = undefined;
    this.#hasGivenUp = true;
    clearTimeout(this.#restartTimer);
    this.#enterState('down', reason);
    log.error({ process: code, reason }, `${subject}: process stays down until a reload or restart of the server`);
    void current?.end(STOP_GRACE_MS);
  }

  /** Changes the number of concurrent calls. */
  limit(concurrency: number): void {
    this.#limiter.resize(concurrency);
  }

  /** Ends the child permanently; pending and later calls are rejected. Never throws. */
  async stop(): Promise<void> {
    clearTimeout(this.#restartTimer);
    const current = this.#current;
    this.#current = undefined;
    this.#enterState('stopped', 'stopped');
    await current?.end(STOP_GRACE_MS);
  }

  #requireUp(): ChildInstance {
    if (this.#state !== 'up' || this.#current === undefined) throw this.#downError();
    return this.#current;
  }

  #downError(): EstuaryError {
    return this.#unavailable('DOWN', `${this.#options.subject} is temporarily unavailable`, this.#reason);
  }

  #unavailable(suffix: 'BUSY' | 'DOWN', message: string, detail: string): EstuaryError {
    const { code, retryAfter } = this.#options;
    return unavailable(`${code}_${suffix}`, message, { retryAfter, detail });
  }

  #enterState(state: IsolatedState, reason: string): void {
    const hasEnded = this.#state === 'starting' || state === 'stopped' || this.#hasGivenUp;
    this.#state = state;
    this.#reason = reason;
    if (hasEnded) for (const resolve of this.#waiting.splice(0)) resolve();
    if (state !== 'up') this.#limiter.rejectWaiting(this.#downError());
  }

  async #launch(): Promise<void> {
    const { module, env, init, opened, startTimeoutMs, code, subject, log, onOutput, secret } = this.#options;
    this.#enterState('starting', 'starting');
    const instance = new ChildInstance({
      module,
      env,
      lost: (kind, detail) => failed(`${code}_${kind}`, `${subject} failed`, { detail }),
      onEnd: (reason) => this.#ended(instance, reason),
      onOutput,
      secret,
    });
    this.#current = instance;
    const found = await instance.call(INIT, init, startTimeoutMs);
    await opened?.((method, args) => instance.call(method, args, startTimeoutMs), found);
    if (this.#current !== instance) throw this.#downError();
    this.#upSince = performance.now();
    this.#enterState('up', '');
    log.info({ process: code, child: instance.pid }, `${subject}: process is up`);
  }

  /** Called once for every instance that ends without `stop()`. */
  #ended(instance: ChildInstance, reason: string): void {
    if (this.#current !== instance) return;
    const { code, subject, log } = this.#options;
    const wasUp = this.#state === 'up';
    this.#current = undefined;
    this.#enterState('down', reason);
    // A failed start is handled by its caller: it may be the first one, or one that must not be repeated.
    if (!wasUp) return;
    log.error({ process: code, reason }, `${subject}: process ended, restarting it`);
    if (performance.now() - this.#upSince > STABLE_AFTER_MS) this.#backoffMs = this.#minBackoffMs;
    this.#scheduleRestart();
  }

  #scheduleRestart(): void {
    this.#restartTimer = setTimeout(() => void this.#relaunch(), this.#backoffMs);
    this.#backoffMs = Math.min(this.#backoffMs * 2, this.#options.maxBackoffMs ?? 5000);
  }

  async #relaunch(): Promise<void> {
    const { code, subject, log } = this.#options;
    try {
      await this.#launch();
    } catch (error) {
      if (this.#state === 'stopped') return;
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof IsolatedError && error.permanent) {
        this.giveUp(reason);
        return;
      }
      const current = this.#current;
      this.#current = undefined;
      this.#enterState('down', reason);
      void current?.end(STOP_GRACE_MS);
      log.warn({ process: code, reason }, `${subject}: cannot start the process, retrying`);
      this.#scheduleRestart();
    }
  }
}
