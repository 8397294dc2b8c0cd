import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
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

/** Forces a file, or the entries of a folder, to disk. */
export function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
