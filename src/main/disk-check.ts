/** Whether the disks below the store and the audit log have room, and can be written. */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config/schema.ts';
import { describe } from '../errors.ts';
import { MIN_FREE } from '../store/audit-chain.ts';

export interface DiskFinding {
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
}

/** What `statfs` says of a file system. */
export type ReadSpace = (path: string) => Readonly<Record<'bsize' | 'blocks' | 'bavail' | 'files' | 'ffree', number>>;

const MIB = 2 ** 20;
/** Nearly full: less than both. */
const NEARLY_FULL = { bytes: 64 * MIB, share: 0.1 };
const LOW = { bytes: 1024 * MIB, share: 0.05 };
/** Bytes of a test file. */
const PROBE = 65_536;

/**
 * One finding for each folder that the server writes to.
 *
 * @param readSpace for tests
 */
export function checkDisks(config: Pick<Config, 'store' | 'audit'>, readSpace: ReadSpace = statfsSync): DiskFinding[] {
  const folders = new Map<string, { uses: string[]; files: string[] }>();
  const add = (use: string, folder: string, ...files: string[]): void => {
    const known = folders.get(folder) ?? { uses: [], files: [] };
    folders.set(folder, { uses: [...known.uses, use], files: [...known.files, ...files] });
  };
  const { store, audit } = config;
  if (store.driver === 'sqlite') add('store', dirname(store.path), store.path);
  add('audit log', dirname(audit.file), audit.file);
  if (audit.archive !== undefined) add('audit archive', audit.archive);
  return [...folders].map(([folder, { uses, files }]) => check(folder, uses.join(', '), files, readSpace));
}

function check(folder: string, uses: string, files: readonly string[], readSpace: ReadSpace): DiskFinding {
  const where = `${folder} (${uses})`;
  try {
    const { bsize, blocks, bavail, files: inodes, ffree } = readSpace(nearest(folder));
    const [free, all] = [bavail * bsize, blocks * bsize];
    const space = `${where}: ${free} bytes free of ${all}`;
    const below = (limit: { readonly bytes: number; readonly share: number }): boolean =>
      free < limit.bytes && free < all * limit.share;
    if (free < MIN_FREE)
      return { status: 'failed', detail: `${space}: the disk is full, and the server issues nothing. Free some space` };
    if (inodes > 0 && ffree === 0)
      return { status: 'failed', detail: `${space}, but no inode is free. Delete files that are not needed` };
    if (below(NEARLY_FULL)) return { status: 'failed', detail: `${space}: the disk is nearly full. Free some space` };
    const problem = writeProblem(folder, files);
    if (problem !== undefined) return { status: 'failed', detail: `${space}, but ${problem}` };
    if (below(LOW)) return { status: 'warning', detail: `${space}: less than 5 %` };
    return { status: 'ok', detail: space };
  } catch (error) {
    return { status: 'failed', detail: `${where}: ${describe(error)}` };
  }
}

/** The folder, or that above it in which the server would create it. */
const nearest = (folder: string): string =>
  existsSync(folder) || dirname(folder) === folder ? folder : nearest(dirname(folder));

/** Writes and deletes a test file, and opens the server's own files without a change. */
function writeProblem(folder: string, files: readonly string[]): string | undefined {
  if (!existsSync(folder)) return undefined;
  const probe = join(folder, `.estuary-doctor-${process.pid}`);
  try {
    for (const file of files) if (existsSync(file)) closeSync(openSync(file, 'r+'));
    const descriptor = openSync(probe, 'wx', 0o600);
    try {
      writeSync(descriptor, Buffer.alloc(PROBE));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
      rmSync(probe);
    }
    return undefined;
  } catch (error) {
    return `it cannot be written: ${describe(error)}`;
  }
}
