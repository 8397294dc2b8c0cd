/** Opens what a CA depends on. What is not there yet is tried again, so that only this CA waits for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe } from '../errors.ts';
import type { IsolatedLog } from '../process/isolated-process.ts';
import { IsolatedError } from '../process/protocol.ts';

interface PersistentStartOptions {
  /** As in the log: `the hardware security module`. */
  readonly what: string;
  readonly log: Pick<IsolatedLog, 'info' | 'warn'>;
  /** Milliseconds that the start of the server waits for it. */
  readonly patience: number;
  /** Milliseconds between attempts. */
  readonly interval?: number | undefined;
}

const INTERVAL = 5000;

export class PersistentStart {
  readonly #open: () => Promise<void>;
  readonly #options: PersistentStartOptions;
  #problem: string | undefined;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param open one attempt; a permanent {@link IsolatedError}, such as for a rejected PIN, ends the attempts */
  constructor(open: () => Promise<void>, options: PersistentStartOptions) {
    this.#open = open;
    this.#options = options;
  }

  /** Why it is not open; undefined once it is, and before {@link start}. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves after the first attempt, or while it lasts too long. Never rejects. */
  async start(): Promise<void> {
    this.#problem = `${this.#options.what} has not answered yet`;
    await Promise.race([this.#attempt(), sleep(this.#options.patience, undefined, { ref: false })]);
  }

  async #attempt(): Promise<void> {
    const { what, log, interval = INTERVAL } = this.#options;
    const before = this.#problem;
    try {
      await this.#open();
      this.#problem = undefined;
      if (this.#timer !== undefined) log.info({}, `${what}: in use`);
    } catch (error) {
      const isFinal = error instanceof IsolatedError && error.permanent;
      this.#problem = describe(error);
      if (this.#isStopped) return;
      const next = isFinal ? 'not tried again before a reload' : 'tried again';
      if (this.#problem !== before) log.warn({ detail: this.#problem }, `cannot use ${what}; ${next}`);
      if (!isFinal) this.#timer = setTimeout(() => void this.#attempt(), interval).unref();
    }
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
