/** A copy of the store, made beside a running server: it takes no lock and writes nothing of the store. */
import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ChainHead } from '../../audit/record.ts';
import { failed } from '../../errors.ts';
import { makeFolder } from '../../folders.ts';
import { lookupKeyFile } from '../../store/lookup-key-file.ts';
import { openReadOnly } from '../../store/sqlite/database.ts';
import { VERSION } from '../../version.ts';
import { copyPrivately, sync, writePrivately } from './files.ts';
import { DATABASE, describeFiles, LOOKUP_KEY, MANIFEST, type Manifest } from './manifest.ts';

export interface BackupOptions {
  readonly storePath: string;
  /** Whether the key of the tokens' lookups is one that the server made beside the store. */
  readonly ownLookupKey: boolean;
  /** A folder that is not there, or empty. */
  readonly to: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly progress: (text: string) => void;
}

/**
 * @returns what stands in `backup.json`
 * @throws EstuaryError 500 `BACKUP_EXISTS`, and whatever keeps the store from being read; errors of the file system
 */
export function backUp({ storePath, ownLookupKey, to, now, progress }: BackupOptions): Manifest {
  if (!existsSync(storePath))
    throw failed('STORE_FAILED', 'there is no store to back up', { detail: `${storePath} does not exist` });
  makeFolder(to);
  if (readdirSync(to).length > 0)
    throw failed('BACKUP_EXISTS', 'the folder of the backup is not empty', { detail: to });
  const made_at = new Date(now()).toISOString();
  try {
    progress(`copying ${storePath} (${bytesOf(storePath)} bytes)`);
    const audit = copyDatabase(storePath, join(to, DATABASE));
    progress(`checked: whole up to audit record ${audit.seq}`);
    const names = [DATABASE];
    const key = lookupKeyFile(storePath);
    if (ownLookupKey && existsSync(key)) {
      copyPrivately(key, join(to, LOOKUP_KEY));
      names.push(LOOKUP_KEY);
    }
    const manifest: Manifest = { format: 1, made_at, version: VERSION, audit, files: describeFiles(to, names) };
    writePrivately(join(to, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    sync(to);
    return manifest;
  } catch (error) {
    for (const name of [DATABASE, LOOKUP_KEY, MANIFEST]) rmSync(join(to, name), { force: true });
    throw error;
  }
}

/** The size of a store in bytes, with what a server has written but not taken over into the database yet: of a young one that is all. 0 where there is none. */
export function bytesOf(storePath: string): number {
  const sizes = ['', '-wal'].map((suffix) => statSync(`${storePath}${suffix}`, { throwIfNoEntry: false })?.size ?? 0);
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** One read transaction, however much is written meanwhile; the copy has no free pages. */
function copyDatabase(from: string, to: string): ChainHead {
  // SQLite would make it readable for all.
  closeSync(openSync(to, 'wx', 0o600));
  const db = openReadOnly(from);
  try {
    db.prepare('VACUUM INTO ?').run(to);
  } finally {
    db.close();
  }
  sync(to);
  const copy = openReadOnly(to);
  try {
    const found: unknown = copy.pragma('quick_check', { simple: true });
    const head = copy.prepare<[], ChainHead>('SELECT seq, hash FROM audit_head').get();
    if (found !== 'ok' || head === undefined)
      throw failed('STORE_FAILED', 'the store is damaged', { detail: `${from}: ${String(found)}` });
    return head;
  } finally {
    copy.close();
  }
}
