/** Files of a backup and of a store that is restored: written for their owner only, and on disk before anything depends on them. */
import { chmodSync, closeSync, constants, copyFileSync, fsyncSync, openSync, readSync, renameSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { existsSync, writeSync } from 'node:fs';

const CHUNK = 1 << 20;

export function sync(path: string): void {
  const fd = openSync(path, 'r');
  fsyncSync(fd);
  closeSync(fd);
}

/** Copies without holding it in memory; the copy is 0600. */
export function copyPrivately(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  chmodSync(to, 0o600);
  sync(to);
}

export function writePrivately(path: string, text: string): void {
  const fd = openSync(path, 'w', 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** @returns lower-case hex SHA-256 */
export function digestOf(path: string): string {
  const digest = createHash('sha256');
  const fd = openSync(path, 'r');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (let read = readSync(fd, chunk); read > 0; read = readSync(fd, chunk)) digest.update(chunk.subarray(0, read));
  } finally {
    closeSync(fd);
  }
  return digest.digest('hex');
}

/**
 * Renames a file out of the way.
 *
 * @param mark says when
 * @returns its new name; undefined: there was none
 */
export function moveAside(path: string, mark: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const aside = `${path}.replaced-${mark}`;
  renameSync(path, aside);
  return aside;
}
