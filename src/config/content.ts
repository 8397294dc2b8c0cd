/** Reads files that an operator names, which may be pipes and devices. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../errors.ts';

/** Milliseconds in which a pipe has to give everything, and between looks. */
const [PATIENCE, PAUSE] = [2000, 20];
const MAX_CONTENT = 4 << 20;

/** Its message says why there is no content. */
export class ContentError extends Error {}

/**
 * The content of a file. That of a pipe which nobody writes to, or of a device without an end, would hold a start or a
 * reload for ever.
 * @throws ContentError; the system's error
 */
export async function readContent(file: string): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    return stats.isFile() || stats.isDirectory() ? await handle.readFile() : await readStream(handle, stats.isFIFO());
  } finally {
    await handle.close();
  }
}

async function readStream(handle: FileHandle, isPipe: boolean): Promise<Buffer> {
  const end = Date.now() + PATIENCE;
  let content = Buffer.alloc(0);
  while (content.length <= MAX_CONTENT) {
    const chunk = await readSome(handle);
    // The writer may not have opened the pipe yet.
    const isWaiting = chunk === undefined || (isPipe && chunk.length === 0 && content.length === 0);
    if (!isWaiting && chunk.length === 0) return content;
    if (!isWaiting) content = Buffer.concat([content, chunk]);
    else if (Date.now() < end) await sleep(PAUSE);
    else throw new ContentError('it is a pipe that nobody writes to, or that does not end');
  }
  throw new ContentError(`it is a device or a pipe with more than ${MAX_CONTENT} octets`);
}

/** undefined: nothing yet */
async function readSome(handle: FileHandle): Promise<Buffer | undefined> {
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(65_536), 0, 65_536, null);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    if (codeOf(error) !== 'EAGAIN') throw error;
    return undefined;
  }
}
