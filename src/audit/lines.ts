import { readSync } from 'node:fs';

/** A line of a file. */
export interface FileLine {
  readonly text: string;
  /** Offset of its first byte. */
  readonly start: number;
  /** Offset behind its line feed, or behind the last byte of an unfinished line. */
  readonly end: number;
  /** Whether it ends with a line feed; only the last line can lack it. */
  readonly whole: boolean;
}

const CHUNK = 1 << 20;
const LINE_FEED = 0x0a;

/** Reads the lines of `fd` between two offsets, a chunk at a time, so that a file of any size can be gone through. */
export function* readLines(fd: number, from: number, to: number): Generator<FileLine> {
  let rest: Buffer = Buffer.alloc(0);
  let start = from;
  for (let position = from; position < to;) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, to - position));
    const read = readSync(fd, chunk, 0, chunk.length, position);
    if (read === 0) break;
    position += read;
    let buffer = rest.length === 0 ? chunk.subarray(0, read) : Buffer.concat([rest, chunk.subarray(0, read)]);
    for (let at = buffer.indexOf(LINE_FEED); at !== -1; at = buffer.indexOf(LINE_FEED)) {
      yield { text: buffer.toString('utf8', 0, at), start, end: start + at + 1, whole: true };
      start += at + 1;
      buffer = buffer.subarray(at + 1);
    }
    rest = buffer;
  }
  if (rest.length > 0) yield { text: rest.toString('utf8'), start, end: start + rest.length, whole: false };
}
