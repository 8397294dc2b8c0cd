import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from './errors.ts';

/**
 * Creates a folder and its parents for the owner only. (`mkdirSync` with `recursive` never returns below a folder that
 * reports ENOENT for new entries, such as /proc.)
 * @throws a file system error
 */
export function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process was faster.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

const CHUNK = 1 << 20;

/** Copies an open file to a new one, which nobody else can read, and syncs it. A link in the way is no target. */
export function copyOpen(from: number, to: string): void {
  const fd = openSync(to, 'wx', 0o600);
  try {
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (let at = 0, read = readSync(from, chunk, 0, CHUNK, 0); read > 0; read = readSync(from, chunk, 0, CHUNK, at)) {
      writeFileSync(fd, chunk.subarray(0, read));
      at += read;
    }
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The folder, or its nearest existing parent. */
export const nearestFolder = (folder: string): string =>
  existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));

/** Replaces a file by a copy of an open one. */
export function renameCopy(from: number, to: string): void {
  const copy = `${to}.copy`;
  rmSync(copy, { force: true });
  copyOpen(from, copy);
  renameSync(copy, to);
  sync(dirname(to));
}

/** Forces a file, or the entries of a folder, to disk. */
export function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
