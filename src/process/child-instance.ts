import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { EstuaryError } from '../errors.ts';
import { IsolatedError, parseReply } from './protocol.ts';

/** How a call without a result ended. */
type Loss = 'FAILED' | 'TIMEOUT';

interface ChildInstanceOptions {
  readonly module: URL;
  readonly env: Readonly<Record<string, string>>;
  /** Creates the error of a call without a result; `detail` is for the log. */
  lost(kind: Loss, detail: string): EstuaryError;
  /** Called once, when the process has ended or was abandoned. */
  onEnd(reason: string): void;
  /** Receives each line of the child's stderr. */
  onOutput?: ((line: string) => void) | undefined;
  /** Removed from what the child writes to stderr. */
  readonly secret?: string | undefined;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
  readonly timer: NodeJS.Timeout;
}

/** Characters of the child's stderr kept for the reason of its end, and of one line. */
const STDERR_TAIL = 2048;
const LINE = 500;
const STDERR_WAIT_MS = 100;

/** One isolated child process, from fork to exit, with its pending calls. */
export class ChildInstance {
  readonly #child: ChildProcess;
  readonly #options: ChildInstanceOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  #nextId = 0;
  #stderr = '';
  #line = '';
  #over = false;

  constructor(options: ChildInstanceOptions) {
    this.#options = options;
    this.#child = fork(fileURLToPath(options.module), [], {
      // The child inherits neither the command line, nor NODE_OPTIONS, nor the environment. It has secrets in memory, so
      // no signal may open a debugger.
      execArgv: ['--disable-sigusr1'],
      env: { ...options.env },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Its own session: terminal signals to the process group do not end the child before its parent handles them.
      detached: true,
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#print(text));
    this.#child.on('message', (message) => this.#receive(message));
    this.#child.on('error', (error) => this.#finish('FAILED', `cannot run the process: ${error.message}`));
    this.#exited = new Promise((resolve) => {
      // Not the child's `close` event: it does not fire if the parent disconnected first.
      this.#child.once('error', () => resolve());
      this.#child.once('exit', (exitCode, signal) => {
        void this.#stderrRead().then(() => {
          const stderr = this.#withoutSecret(this.#stderr);
          this.#print('\n');
          // A process that the child forked may hold both open, and would keep this one running.
          this.#child.stderr?.destroy();
          if (this.#child.connected) this.#child.disconnect();
          this.#finish('FAILED', `process ended (${signal ?? `exit code ${String(exitCode)}`}) ${stderr}`.trim());
          resolve();
        });
      });
    });
  }

  /** Waits briefly for the end of stderr: another process may hold it open. */
  async #stderrRead(): Promise<void> {
    const { stderr } = this.#child;
    if (stderr === null || stderr.closed) return;
    await Promise.race([once(stderr, 'close'), sleep(STDERR_WAIT_MS, undefined, { ref: false })]);
  }

  #print(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-STDERR_TAIL);
    const lines = (this.#line + text).split(/[\r\n]+/);
    this.#line = lines.pop()?.slice(-STDERR_TAIL) ?? '';
    for (const line of lines) {
      const shown = this.#withoutSecret(line)
        .replace(/\p{Cc}+/gu, ' ')
        .trim();
      if (shown !== '') this.#options.onOutput?.(shown.slice(0, LINE));
    }
  }

  /** Also without its octets in hex, which some libraries write when they trace calls. */
  #withoutSecret(text: string): string {
    const { secret = '' } = this.#options;
    if (secret === '') return text;
    const hex = [...Buffer.from(secret)].map((octet) => octet.toString(16).padStart(2, '0')).join('[ :]*');
    return text.replaceAll(secret, '[secret]').replace(new RegExp(hex, 'gi'), '[secret]');
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  call(method: string, args: unknown, deadlineMs: number): Promise<unknown> {
    const id = (this.#nextId += 1);
    return new Promise((resolve, reject) => {
      if (this.#over) {
        reject(this.#options.lost('FAILED', 'process has ended'));
        return;
      }
      this.#pending.set(id, { resolve, reject, timer: setTimeout(() => this.#overdue(id, method), deadlineMs) });
      this.#child.send({ id, method, args }, (error) => {
        if (error !== null) this.kill(`cannot be written to: ${error.message}`);
      });
    });
  }

  /** Kills the process at once; calls in flight fail. */
  kill(reason: string, loss: Loss = 'FAILED'): void {
    this.#child.kill('SIGKILL');
    this.#finish(loss, reason);
  }

  /** Asks the process to end, and kills it after `graceMs`; calls in flight fail. */
  async end(graceMs: number): Promise<void> {
    this.#finish('FAILED', 'stopped');
    if (this.#child.connected) this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs);
    await this.#exited;
    clearTimeout(timer);
  }

  #overdue(id: number, method: string): void {
    // If this process was blocked, the reply may already be in the channel: read it first.
    setImmediate(() =>
      setImmediate(() => {
        if (this.#pending.has(id)) this.kill(`no response to ${method} within its deadline`, 'TIMEOUT');
      }),
    );
  }

  #receive(message: unknown): void {
    if (this.#over) return;
    const reply = parseReply(message);
    const pending = reply === undefined ? undefined : this.#pending.get(reply.id);
    if (reply === undefined || pending === undefined) {
      this.kill('sent an invalid response');
      return;
    }
    this.#pending.delete(reply.id);
    clearTimeout(pending.timer);
    if (reply.ok) pending.resolve(reply.value);
    else pending.reject(new IsolatedError(reply.error.code, reply.error.message, reply.error));
  }

  #finish(loss: Loss, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer);
      pending.reject(this.#options.lost(loss, reason));
    }
    this.#pending.clear();
    this.#options.onEnd(reason);
  }
}
