/**
 * Atomic file operations: the process may be killed before and after any of them. They are synchronous, so nothing
 * happens in between.
 */
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readContentSync } from '../../config/content.ts';
import { codeOf } from '../../errors.ts';
import { SYSTEM } from '../system.ts';
import { isKeyUri } from '../token/key-uri.ts';

/** Permissions of a file; numeric owner and group. */
export interface FileAccess {
  readonly mode: number;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}

export interface Disk {
  /** undefined if it does not exist or is a folder. @param encoding default: utf8 */
  read(path: string, encoding?: 'latin1'): string | undefined;
  /** Sorted names; empty if the folder does not exist. */
  list(folder: string): string[];
  /** Names of the executable files in a folder, sorted. */
  programs(folder: string): string[];
  linkTarget(path: string): string | undefined;
  /** Creates a folder and its parents. */
  makeFolder(path: string, access: FileAccess): void;
  /** Writes and syncs a new file. Does not overwrite. */
  write(path: string, content: string | Buffer, access: FileAccess): void;
  /** May replace a file or an empty folder; synced on return. */
  rename(from: string, to: string): void;
  makeLink(target: string, path: string): void;
  /** Removes a file or a folder with its content. */
  remove(path: string): void;
}

export const DISK: Disk = {
  read(path, encoding) {
    try {
      return readContentSync(path).toString(encoding ?? 'utf8');
    } catch (error) {
      if (isMissing(error) || codeOf(error) === 'EISDIR') return undefined;
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
  programs: (folder) => DISK.list(folder).filter((name) => isProgram(join(folder, name))),
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
    SYSTEM.syncFolder(dirname(path));
  },
  write(path, content, { mode, uid, gid }) {
    const file = openSync(path, 'wx', mode & 0o600);
    try {
      writeFileSync(file, content);
      if (uid !== undefined || gid !== undefined) fchownSync(file, uid ?? -1, gid ?? -1);
      fchmodSync(file, mode);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
  rename(from, to) {
    SYSTEM.syncFolder(dirname(from));
    renameSync(from, to);
    SYSTEM.syncFolder(dirname(to));
  },
  makeLink: (target, path) => SYSTEM.makeLink(target, path),
  remove: (path) => rmSync(path, { recursive: true, force: true }),
};

/** Not what editors and dpkg leave. */
function isProgram(path: string): boolean {
  if (!/^[\w-][\w.-]*$/.test(basename(path)) || /\.(?:dpkg-\w+|bak|orig|rej)$/.test(path)) return false;
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error));

export interface VersionFile {
  readonly name: string;
  readonly content: string | Buffer;
  /** Whether it contains the private key. */
  readonly secret: boolean;
}

/** @param key PEM, or the URI of a key in a token */
export const keyFile = (key: string): VersionFile =>
  isKeyUri(key)
    ? { name: 'key.uri', content: `${key.trim()}\n`, secret: false }
    : { name: 'key.pem', content: key, secret: true };
