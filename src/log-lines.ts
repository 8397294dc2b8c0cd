/** Where the lines of the log go: standard output, several in one write. */
import { writeSync } from 'node:fs';
import { pino } from 'pino';
import type { DestinationStream } from 'pino';

/** Milliseconds that a line may wait for others. */
const PATIENCE = 10;
/** Bytes of a write: as many as a pipe that several processes share takes in one piece. */
const PIECE = 4096;
const STDOUT = 1;
/** Milliseconds that a thread gets at the end of the process for what it is writing. */
const LAST_WRITE = 100;

interface LineSink {
  write(text: string): void;
  /** The process ends: what is not written when it returns never is. */
  writeLast(text: string): void;
}

/**
 * Gathers lines for a few milliseconds, because each write costs more than the making of its line. A line at `warn` and above goes at
 * once, with those before it, and so does everything when the process ends.
 */
export class LineBuffer implements DestinationStream {
  readonly #sink: LineSink;
  #lines: string[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: LineSink = standardOutput()) {
    this.#sink = sink;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > PIECE) this.#flush();
    this.#lines.push(line);
    this.#bytes += bytes;
    if (!CALM.test(line)) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), PATIENCE);
  }

  /** To be called when the process ends. */
  end(): void {
    const text = this.#take();
    if (text !== '') this.#sink.writeLast(text);
  }

  #flush(): void {
    const text = this.#take();
    if (text !== '') this.#sink.write(text);
  }

  #take(): string {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#bytes = 0;
    return text;
  }
}

/** Lines of pino's levels below `warn`. */
const CALM = /^\{"level":[123]0,/;

/** Standard output, by a thread of the pool: whoever reads it slowly does not hold up the service. */
function standardOutput(): LineSink {
  const stream = pino.destination({ dest: STDOUT, sync: false, maxWrite: PIECE });
  let isBusy = false;
  stream.on('drain', () => (isBusy = false));
  return {
    write(text) {
      isBusy = true;
      stream.write(text);
    },
    writeLast(text) {
      // Otherwise what the thread has in hand would stand behind what is written here.
      if (isBusy) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WRITE);
      try {
        stream.flushSync();
        writeSync(STDOUT, text);
      } catch {
        // Nobody reads it any more, or not fast enough.
      }
    },
  };
}
