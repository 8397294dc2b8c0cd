/** Reads files that an operator names, which may be pipes and devices. */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../errors.ts';

/** Milliseconds in which a pipe has to give everything, and between looks. */
const [PATIENCE, PAUSE] = [2000, 20];
/** Where nothing else waits: the program that writes may ask a person. */
const LONG_PATIENCE = 60_000;
const MAX_CONTENT = 4 << 20;
/** A pipe that nobody writes to does not hold its reader. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** Its message says why there is no content. */
export class ContentError extends Error {}

/**
 * The content of a file. That of a pipe which nobody writes to, or of a device without an end, would hold a start or a
 * reload for ever.
 * @throws ContentError; the system's error
 */
export async function readContent(file: string): Promise<Buffer> {
  const handle = await open(file, FLAGS);
  try {
    const stats = await handle.stat();
    if (stats.isFile() || stats.isDirectory()) return await handle.readFile();
    const stream = new Stream(handle.fd, stats.isFIFO(), PATIENCE);
    while (!stream.read()) await sleep(PAUSE);
    return stream.content;
  } finally {
    await handle.close();
  }
}

/** The same, while the caller waits. @throws ContentError; the system's error */
export function readContentSync(file: string): Buffer {
  const fd = openSync(file, FLAGS);
  try {
    const stats = fstatSync(fd);
    if (stats.isFile() || stats.isDirectory()) return readFileSync(fd);
    const stream = new Stream(fd, stats.isFIFO(), LONG_PATIENCE);
    while (!stream.read()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE);
    return stream.content;
  } finally {
    closeSync(fd);
  }
}

class Stream {
  content = Buffer.alloc(0);
  readonly #fd: number;
  readonly #isPipe: boolean;
  readonly #end: number;

  constructor(fd: number, isPipe: boolean, patience: number) {
    this.#fd = fd;
    this.#isPipe = isPipe;
    this.#end = Date.now() + patience;
  }

  /** Reads what there is. @returns whether that is all. @throws ContentError */
  read(): boolean {
    while (this.content.length <= MAX_CONTENT) {
      const chunk = readSome(this.#fd);
      // The writer may not have opened the pipe yet.
      const isWaiting = chunk === undefined || (this.#isPipe && chunk.length === 0 && this.content.length === 0);
      if (isWaiting && Date.now() < this.#end) return false;
      if (isWaiting) throw new ContentError('it is a pipe that nobody writes to, or that does not end');
      if (chunk.length === 0) return true;
      this.content = Buffer.concat([this.content, chunk]);
    }
    throw new ContentError(`it is a device or a pipe with more than ${MAX_CONTENT} octets`);
  }
}

/** undefined: nothing yet */
function readSome(fd: number): Buffer | undefined {
  const chunk = Buffer.alloc(65_536);
  try {
    return chunk.subarray(0, readSync(fd, chunk));
  } catch (error) {
    if (codeOf(error) !== 'EAGAIN') throw error;
    return undefined;
  }
}
