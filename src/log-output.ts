/**
 * The file, pipe or terminal that takes the log. It may be full, closed, blocked or gone, and never delays or stops the
 * process: what it does not accept waits up to a limit, and is lost and counted beyond it.
 */
import { constants, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';

export const STDOUT = 1;
/** Maximum bytes that wait. */
const MAX_WAITING = 2 ** 20;
/** Milliseconds until the next attempt, at first and at most. */
const RETRY = { first: 5, most: 250 };
/** Milliseconds without progress after which the output counts as blocked. */
const BLOCKED = 1000;
/** Milliseconds for a write in progress at process exit. */
const LAST_WRITE = 100;

type Written = (error: NodeJS.ErrnoException | null, bytes: number) => void;

/** Writes once, without waiting for the output. */
type WriteOnce = (piece: Buffer, done: Written) => void;

export interface OutputState {
  /** Lines since the start of the process. */
  readonly lost: number;
  /** Why the output accepts nothing now. */
  readonly problem: string | undefined;
}

export class LogOutput {
  readonly #writeOnce: WriteOnce;
  readonly #lossLine: (lost: number) => string;
  #waiting: Buffer[] = [];
  #bytes = 0;
  #isBusy = false;
  #retry: NodeJS.Timeout | undefined;
  #delay = RETRY.first;
  #progressAt = performance.now();
  #failure: string | undefined;
  #lost = 0;
  /** Those that the log does not mention yet. */
  #unmentioned = 0;

  /** @param lossLine the line that says how many are missing */
  constructor(writeOnce: WriteOnce, lossLine: (lost: number) => string) {
    this.#writeOnce = writeOnce;
    this.#lossLine = lossLine;
  }

  get state(): OutputState {
    const isBlocked = this.#bytes > 0 && performance.now() - this.#progressAt > BLOCKED;
    return { lost: this.#lost, problem: this.#failure ?? (isBlocked ? 'blocked' : undefined) };
  }

  /** @param text whole lines */
  write(text: string): void {
    this.#mentionLoss();
    if (!this.#keep(text)) {
      const lines = text.split('\n').length - 1;
      this.#lost += lines;
      this.#unmentioned += lines;
    }
    if (this.#retry === undefined) this.#pump();
  }

  /** Writes synchronously at process exit. */
  writeLast(fd: number): void {
    // Otherwise the pending data of the thread would follow what is written here.
    if (this.#isBusy) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WRITE);
    try {
      for (const piece of this.#waiting.slice(this.#isBusy ? 1 : 0)) writeSync(fd, piece);
    } catch {
      // The output is full, blocked or gone.
    }
  }

  #keep(text: string): boolean {
    const piece = Buffer.from(text);
    if (this.#bytes + piece.length > MAX_WAITING) return false;
    if (this.#bytes === 0) this.#progressAt = performance.now();
    this.#waiting.push(piece);
    this.#bytes += piece.length;
    return true;
  }

  #mentionLoss(): void {
    if (this.#unmentioned > 0 && this.#keep(this.#lossLine(this.#unmentioned))) this.#unmentioned = 0;
  }

  #pump(): void {
    const [piece] = this.#waiting;
    if (piece === undefined || this.#isBusy) return;
    this.#isBusy = true;
    this.#writeOnce(piece, (error, written) => {
      this.#isBusy = false;
      if (error === null) this.#wrote(piece, written);
      else this.#failed(error);
    });
  }

  #wrote(piece: Buffer, written: number): void {
    this.#bytes -= written;
    if (written === piece.length) this.#waiting.shift();
    else this.#waiting[0] = piece.subarray(written);
    this.#progressAt = performance.now();
    this.#delay = RETRY.first;
    this.#failure = undefined;
    if (this.#bytes < MAX_WAITING / 2) this.#mentionLoss();
    this.#pump();
  }

  #failed({ code }: NodeJS.ErrnoException): void {
    // A pipe or terminal that is full only needs time.
    if (code !== 'EAGAIN') this.#failure = code;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#pump();
    }, this.#delay).unref();
    this.#delay = Math.min(this.#delay * 2, RETRY.most);
  }
}

/**
 * Standard output so that a write never blocks: a thread that waits for a pipe or terminal could not end, and neither
 * could the process.
 */
export function unblockedOutput(): number {
  if (isatty(STDOUT))
    try {
      // The shell's own file description must not change.
      return openSync(`/proc/self/fd/${STDOUT}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    } catch {
      return STDOUT;
    }
  // Node makes a pipe or socket non-blocking with its stream.
  process.stdout.on('error', () => undefined);
  return STDOUT;
}

/** Through a thread: the disk of a file may be slow. */
export const writeOnceTo =
  (fd: number): WriteOnce =>
  (piece, done) =>
    write(fd, piece, (error, written) => done(error, written));
