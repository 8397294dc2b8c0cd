/**
 * The few steps by which files change, each whole or not at all on a file system that keeps its word: the process may be killed before and
 * after any of them. Synchronous, so that nothing happens between them.
 */
import {
  chownSync,
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isKeyUri } from '../token/key-uri.ts';

/** Who may read a file; numbers of the system. */
export interface FileAccess {
  readonly mode: number;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}

export interface Disk {
  /** undefined: there is none. */
  read(path: string): string | undefined;
  /** Names, sorted; none where the folder is not there. */
  list(folder: string): string[];
  linkTarget(path: string): string | undefined;
  /** Creates a folder, and those above it. */
  makeFolder(path: string, access: FileAccess): void;
  /** Writes a new file and waits until it is on the disk. Not over another. */
  write(path: string, content: string | Buffer, access: FileAccess): void;
  /** Also over a file or an empty folder; on the disk when it returns. */
  rename(from: string, to: string): void;
  makeLink(target: string, path: string): void;
  /** A file, or a folder with all that is in it. */
  remove(path: string): void;
}

export const DISK: Disk = {
  read(path) {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  },
  list(folder) {
    try {
      return readdirSync(folder).sort();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  },
  linkTarget(path) {
    try {
      return readlinkSync(path);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  },
  makeFolder(path, { mode, uid, gid }) {
    if (existsSync(path)) return;
    mkdirSync(path, { recursive: true, mode });
    if (uid !== undefined || gid !== undefined) chownSync(path, uid ?? -1, gid ?? -1);
    syncFolder(dirname(path));
  },
  write(path, content, { mode, uid, gid }) {
    const file = openSync(path, 'wx', mode & 0o600);
    try {
      const bytes = Buffer.from(content);
      for (let written = 0; written < bytes.length;) written += writeSync(file, bytes, written);
      if (uid !== undefined || gid !== undefined) fchownSync(file, uid ?? -1, gid ?? -1);
      fchmodSync(file, mode);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
  rename(from, to) {
    syncFolder(dirname(from));
    renameSync(from, to);
    syncFolder(dirname(to));
  },
  makeLink: symlinkSync,
  remove: (path) => rmSync(path, { recursive: true, force: true }),
};

/** What stands in a folder is on the disk only after this. */
function syncFolder(folder: string): void {
  const file = openSync(folder, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

/** A file of a version: its name and what it holds. */
export interface VersionFile {
  readonly name: string;
  readonly content: string | Buffer;
  /** Whether it holds the private key. */
  readonly secret: boolean;
}

/** @param key PEM, or the URI of a key in a token */
export const keyFile = (key: string): VersionFile =>
  isKeyUri(key)
    ? { name: 'key.uri', content: `${key.trim()}\n`, secret: false }
    : { name: 'key.pem', content: key, secret: true };
