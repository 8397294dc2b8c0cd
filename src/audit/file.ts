import { chmodSync, closeSync, constants, fdatasync, fdatasyncSync, fstatSync, fsyncSync } from 'node:fs';
import { ftruncateSync, openSync, readSync, renameSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from '../errors.ts';
import { makeFolder, sync } from '../folders.ts';
import { type FileLine, readLines } from './file-cursor.ts';

const FLAGS = constants.O_RDWR | constants.O_APPEND;
const MODE_FILE = 0o600;
const force = promisify(fdatasync);

/**
 * The audit file: appends lines and syncs them to disk. It knows neither chains nor the store. The caller must hold the
 * store's write lock, because several processes append to the same file. Only {@link append} waits for the disk. File
 * system errors propagate.
 */
export class AuditFile {
  readonly path: string;
  #fd: number | undefined;
  /** Identify the open file. */
  #inode = 0;
  #device = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Opens or creates the file; reopens it after it was renamed. @returns its size in bytes */
  open(): number {
    if (this.#fd !== undefined) {
      const named = statSync(this.path, { throwIfNoEntry: false });
      if (named !== undefined && named.ino === this.#inode && named.dev === this.#device) return named.size;
      this.close();
    }
    this.#fd = openOrCreate(this.path);
    const { ino, dev, size } = fstatSync(this.#fd);
    this.#inode = ino;
    this.#device = dev;
    return size;
  }

  /** Appends and syncs; throws if not everything was written (part of it may be). */
  async append(data: Buffer): Promise<void> {
    await force(this.#write(data));
  }

  /** {@link append}, which waits for the disk. */
  appendSync(data: Buffer): void {
    fdatasyncSync(this.#write(data));
  }

  #write(data: Buffer): number {
    const fd = this.#opened();
    let written = 0;
    while (written < data.length) written += writeSync(fd, data, written, data.length - written);
    return fd;
  }

  /** Throws if the file can no longer be opened for writing (permissions, a read-only file system). */
  checkAccess(): void {
    closeSync(openSync(this.path, FLAGS));
  }

  truncate(size: number): void {
    ftruncateSync(this.#opened(), size);
  }

  size(): number {
    return fstatSync(this.#opened()).size;
  }

  /** The `length` bytes before offset `end`. */
  tail(end: number, length: number): Buffer {
    const buffer = Buffer.alloc(length);
    const read = readSync(this.#opened(), buffer, 0, length, Math.max(0, end - length));
    return buffer.subarray(0, read);
  }

  lines(from: number, to: number): Generator<FileLine> {
    return readLines(this.#opened(), from, to);
  }

  close(): void {
    if (this.#fd === undefined) return;
    const fd = this.#fd;
    this.#fd = undefined;
    closeSync(fd);
  }

  #opened(): number {
    if (this.#fd === undefined) throw new Error('the audit file is not open');
    return this.#fd;
  }
}

function openOrCreate(path: string): number {
  try {
    return openSync(path, FLAGS);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  const folder = dirname(path);
  makeFolder(folder);
  const fd = openSync(path, FLAGS | constants.O_CREAT, MODE_FILE);
  // Sync the directory entry too.
  sync(folder);
  return fd;
}

/**
 * An archive file while it is written, with the lines of the audit file. It gets its final name, which states its
 * records, once it is completely on disk. Calls are synchronous; file system errors propagate.
 */
export class ArchiveFile {
  readonly #folder: string;
  readonly #unfinished: string;
  readonly #fd: number;

  /** @param folder created for the owner only, if missing */
  constructor(folder: string) {
    makeFolder(folder);
    this.#folder = folder;
    // A constant name, so that leftovers of a crash are overwritten.
    this.#unfinished = join(folder, '.unfinished');
    this.#fd = openSync(this.#unfinished, 'w', MODE_FILE);
    chmodSync(this.#unfinished, MODE_FILE);
  }

  append(lines: readonly string[]): void {
    writeFileSync(this.#fd, lines.map((line) => `${line}\n`).join(''));
  }

  /** Syncs it to disk and renames it; the numbers in the name sort correctly. @returns its path */
  finish(first: number, last: number): string {
    fsyncSync(this.#fd);
    const path = join(this.#folder, `audit-${digits(first)}-${digits(last)}.jsonl`);
    renameSync(this.#unfinished, path);
    sync(this.#folder);
    return path;
  }

  /** Closes it, finished or not. */
  close(): void {
    closeSync(this.#fd);
  }
}

const digits = (seq: number): string => String(seq).padStart(12, '0');
