import { chmodSync, closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, sync } from '../folders.ts';

/**
 * An archive file while it is written, with the lines of the audit file. It gets its final name, which states its
 * records, once it is completely on disk. Calls are synchronous; file system errors propagate.
 */
export class ArchiveFile {
  readonly #folder: string;
  readonly #unfinished: string;
  #fd: number | undefined;

  /** @param folder created for the owner only, if missing */
  constructor(folder: string) {
    makeFolder(folder);
    this.#folder = folder;
    // A constant name, so that leftovers of a crash are overwritten.
    this.#unfinished = join(folder, '.unfinished');
    this.#fd = openSync(this.#unfinished, 'w', 0o600);
    chmodSync(this.#unfinished, 0o600);
  }

  append(lines: readonly string[]): void {
    const data = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
    const fd = this.#opened();
    for (let written = 0; written < data.length;) written += writeSync(fd, data, written);
  }

  /** Syncs it to disk and renames it; the numbers in the name sort correctly. @returns its path */
  finish(first: number, last: number): string {
    fsyncSync(this.#opened());
    this.close();
    const path = join(this.#folder, archiveName(first, last));
    renameSync(this.#unfinished, path);
    sync(this.#folder);
    return path;
  }

  /** Closes it, finished or not. */
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

const archiveName = (first: number, last: number): string => `audit-${digits(first)}-${digits(last)}.jsonl`;
