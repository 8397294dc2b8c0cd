/** Standard output of a server that fails as a test wants: a named pipe, or a file on a small disk. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { temporaryFolder } from './openssl.ts';

/** Milliseconds between reads. */
const [PAUSE, SLOW] = [20, 500];
const CHUNK = 65_536;

export abstract class FaultyLog {
  /** For the server's standard output. */
  abstract readonly fd: number;
  /** What was read. */
  readonly lines = new PassThrough();
  protected readonly folder = temporaryFolder();
  #timer: NodeJS.Timeout | undefined;

  /** Reads all that there is again and again, or slowly a chunk. */
  protected follow(reader: number, isSlow = false): void {
    this.unfollow();
    const chunk = Buffer.alloc(CHUNK);
    this.#timer = setInterval(
      () => {
        do {
          const size = attempt(() => readSync(reader, chunk));
          if (size === 0) return;
          this.lines.write(Buffer.from(chunk.subarray(0, size)));
        } while (!isSlow);
      },
      isSlow ? SLOW : PAUSE,
    );
  }

  protected unfollow(): void {
    clearInterval(this.#timer);
  }

  /** Ends each fault. */
  abstract repair(): void;

  remove(): void {
    this.unfollow();
    closeSync(this.fd);
    this.folder.remove();
  }
}

/** A pipe whose reader leaves, stops or is slow. */
export class LogPipe extends FaultyLog {
  readonly fd: number;
  #reader: number | undefined;

  constructor() {
    super();
    execFileSync('mkfifo', [this.folder.file('pipe')]);
    this.repair();
    // Without a reader, a pipe cannot be opened for writing: a server that starts then inherits this end.
    this.fd = openSync(this.folder.file('pipe'), constants.O_WRONLY | constants.O_NONBLOCK);
  }

  close(): void {
    this.unfollow();
    if (this.#reader !== undefined) closeSync(this.#reader);
    this.#reader = undefined;
  }

  /** Nobody reads, and the pipe is full. */
  block(): void {
    this.unfollow();
    fillUp(this.fd);
  }

  slow(): void {
    this.block();
    if (this.#reader !== undefined) this.follow(this.#reader, true);
  }

  repair(): void {
    this.#reader ??= openSync(this.folder.file('pipe'), constants.O_RDONLY | constants.O_NONBLOCK);
    this.follow(this.#reader);
  }

  override remove(): void {
    this.close();
    super.remove();
  }
}

/** A file on a separate disk, which is full at times. Needs root. */
export class LogFile extends FaultyLog {
  readonly fd: number;
  readonly #reader: number;

  constructor() {
    super();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', this.folder.path]);
    this.fd = openSync(this.folder.file('log'), 'a');
    this.#reader = openSync(this.folder.file('log'), 'r');
    this.follow(this.#reader);
  }

  fill(): void {
    const filler = openSync(this.folder.file('filler'), 'w');
    fillUp(filler);
    closeSync(filler);
    // The last page of the log has room.
    fillUp(this.fd);
  }

  repair(): void {
    execFileSync('rm', ['-f', this.folder.file('filler')]);
  }

  override remove(): void {
    closeSync(this.#reader);
    this.unfollow();
    closeSync(this.fd);
    execFileSync('umount', [this.folder.path]);
    this.folder.remove();
  }
}

function fillUp(fd: number): void {
  for (const size of [CHUNK, 4096, 1]) while (attempt(() => writeSync(fd, Buffer.alloc(size, '\n'))) > 0);
}

/** 0: there is nothing, or no room. */
function attempt(transfer: () => number): number {
  try {
    return transfer();
  } catch {
    return 0;
  }
}
