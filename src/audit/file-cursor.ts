/** Reads the audit file in step with the store's records. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { codeOf } from '../errors.ts';
import { BrokenFile, type ChainHead, follows, parseLine, type StoredHead } from './record.ts';

export interface FileLine {
  readonly text: string;
  /** Offset of its first byte. */
  readonly start: number;
  /** Offset after its line feed, or after the last byte of a partial line. */
  readonly end: number;
  /** Whether it ends with a line feed; only the last line may lack it. */
  readonly whole: boolean;
}

const CHUNK = 1 << 20;
const LINE_FEED = 0x0a;

/** Reads the lines of `fd` between two offsets in chunks, for files of any size. */
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

export class FileCursor {
  readonly #stored: StoredHead;
  readonly #fd: number | undefined;
  readonly #size: number;
  readonly #lines: Iterator<FileLine>;

  constructor(path: string, stored: StoredHead) {
    this.#stored = stored;
    this.#fd = openIfThere(path);
    this.#size = this.#fd === undefined ? 0 : fstatSync(this.#fd).size;
    const end = Math.min(this.#size, stored.file_size);
    this.#lines = this.#fd === undefined ? [].values() : readLines(this.#fd, 0, end);
    if (this.#size === 0 && stored.file_size > 0)
      throw new BrokenFile(
        stored.file_start,
        `the audit file is missing or empty; it contained records ${stored.file_start} to ${stored.seq}`,
      );
  }

  /** Skips lines of archived records. */
  skip(begin: ChainHead): void {
    let head: ChainHead | undefined;
    for (let seq = this.#stored.file_start; seq <= begin.seq; seq++) {
      const next = this.#lines.next();
      if (next.done === true)
        throw new BrokenFile(seq, `record ${seq} is missing from the audit file, which was cut short`);
      const record = next.value.whole ? parseLine(next.value.text) : undefined;
      if (record === undefined || record.seq !== seq) throw new BrokenFile(seq, difference(seq, next.value));
      if (head !== undefined && !follows(head, record))
        throw new BrokenFile(seq, `record ${seq} in the audit file does not follow record ${head.seq}`);
      head = record;
    }
    if (head !== undefined && head.hash !== begin.hash)
      throw new BrokenFile(begin.seq, `record ${begin.seq} in the audit file is not the one that was archived`);
  }

  expect(seq: number, line: string): void {
    const next = this.#lines.next();
    if (next.done === true)
      throw new BrokenFile(seq, `record ${seq} is missing from the audit file, which was cut short`);
    if (next.value.whole && next.value.text === line) return;
    throw new BrokenFile(seq, difference(seq, next.value));
  }

  /** Counts the lines after the store's last record, which must continue the chain. */
  surplus(last: ChainHead): number {
    const { file_size } = this.#stored;
    if (!(this.#lines.next().done ?? false) || this.#size < file_size)
      throw new BrokenFile(
        last.seq + 1,
        `the audit file continues after record ${last.seq}, the last record in the store`,
      );
    let head = last;
    if (this.#fd === undefined) return 0;
    for (const line of readLines(this.#fd, file_size, this.#size)) {
      // A partial line is a write in progress or the result of a crash; the server removes it.
      if (!line.whole) break;
      const record = parseLine(line.text);
      if (record === undefined || !follows(head, record))
        throw new BrokenFile(head.seq + 1, `the line after record ${head.seq} in the audit file does not follow it`);
      head = record;
    }
    return head.seq - last.seq;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}

/** Describes what the file has instead of record `seq`. */
function difference(seq: number, line: FileLine): string {
  if (!line.whole) return `record ${seq} in the audit file is cut short`;
  const record = parseLine(line.text);
  if (record === undefined) return `record ${seq} in the audit file was changed: its hash does not fit`;
  if (record.seq > seq) return `record ${seq} is missing from the audit file, which has record ${record.seq} there`;
  if (record.seq < seq) return `the audit file has record ${record.seq} again where record ${seq} should be`;
  return `record ${seq} in the audit file differs from the one in the store: it was replaced`;
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
