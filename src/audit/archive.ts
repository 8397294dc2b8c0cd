import { chmodSync, closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../folders.ts';

/**
 * A file of the archive in the making: lines as the audit file has them. It gets its name, which says which records it holds, once all of
 * it is on disk. Calls are synchronous; file system errors pass through.
 */
export class ArchiveFile {
  readonly #folder: string;
  readonly #unfinished: string;
  #fd: number | undefined;

  /** @param folder it is made, for the owner only, where it is missing */
  constructor(folder: string) {
    makeFolder(folder);
    this.#folder = folder;
    // Always the same: what a crash left is written over.
    this.#unfinished = join(folder, '.unfinished');
    this.#fd = openSync(this.#unfinished, 'w', 0o600);
    chmodSync(this.#unfinished, 0o600);
  }

  append(lines: readonly string[]): void {
    const data = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
    const fd = this.#opened();
    for (let written = 0; written < data.length;) written += writeSync(fd, data, written);
  }

  /**
   * Forces it to disk and gives it its name, in which numbers sort as they count.
   *
   * @returns its path
   */
  finish(first: number, last: number): string {
    fsyncSync(this.#opened());
    this.close();
    const path = join(this.#folder, archiveName(first, last));
    renameSync(this.#unfinished, path);
    const folder = openSync(this.#folder, 'r');
    fsyncSync(folder);
    closeSync(folder);
    return path;
  }

  /** Lets go of it, finished or not. */
  close(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }

  #opened(): number {
    if (this.#fd === undefined) throw new Error('the file of the archive is closed');
    return this.#fd;
  }
}

const digits = (seq: number): string => String(seq).padStart(12, '0');

/** The name of the file that holds these records. */
const archiveName = (first: number, last: number): string => `audit-${digits(first)}-${digits(last)}.jsonl`;
