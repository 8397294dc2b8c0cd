/** Writes log lines to standard output, several per write. */
import { writeSync } from 'node:fs';
import { pino } from 'pino';
import type { DestinationStream } from 'pino';

/** Milliseconds that a line may wait for others. */
const MAX_WAIT = 10;
/** Bytes per write: the maximum that a pipe shared by several processes takes atomically. */
const PIECE = 4096;
const STDOUT = 1;
/** Milliseconds for a write in progress at process exit. */
const LAST_WRITE = 100;

interface LineSink {
  write(text: string): void;
  /** Writes synchronously at process exit. */
  writeLast(text: string): void;
}

/**
 * Buffers lines for a few milliseconds, because each write costs more than formatting its line. A line at `warn` or
 * above flushes the buffer at once, and so does process exit.
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
    else this.#timer ??= setTimeout(() => this.#flush(), MAX_WAIT);
  }

  /** Call at process exit. */
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

/** Standard output through a pool thread, so that a slow reader does not delay the service. */
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
      // Otherwise the thread's pending data would follow what is written here.
      if (isBusy) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WRITE);
      try {
        stream.flushSync();
        writeSync(STDOUT, text);
      } catch {
        // The reader is gone or too slow.
      }
    },
  };
}
