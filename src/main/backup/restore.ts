/**
 * Restores a backup, then replays later events from the audit file. It works on a copy next to the store, which replaces the store at the
 * end; until then nothing changes.
 */
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ChainHead } from '../../audit/record.ts';
import { failed } from '../../errors.ts';
import { makeFolder, sync } from '../../folders.ts';
import { openWritable } from '../../store/sqlite/database.ts';
import { openReplay } from '../../store/sqlite/replay-session.ts';
import { copyPrivately, DATABASE, unusedSuffix, type Manifest, moveAside, OWN_KEYS, readBackup } from './backup.ts';
import { catchUp, type CatchUpOptions, type CaughtUp } from './catch-up.ts';

export interface RestoreOptions extends Pick<CatchUpOptions, 'auditFile' | 'archive' | 'cas' | 'now' | 'bar'> {
  readonly from: string;
  readonly storePath: string;
  readonly ownLookupKey: boolean;
  readonly ownHmacKey: boolean;
  readonly node: string;
  readonly progress: (text: string) => void;
  /** Shows the progress of writing a file, until the returned function is called. */
  readonly watch: (file: string, bytes: number) => () => void;
}

export interface Restored extends CaughtUp {
  readonly manifest: Manifest;
}

/** Increment of the CRL numbers if the used ones are unknown. */
const CRL_NUMBERS_SKIPPED = 1_000_000;

/**
 * The caller holds the store's lock.
 * @throws EstuaryError 500 `BACKUP_DAMAGED`; 503 `AUDIT_TAMPERED` if the audit file is broken or from another store;
 * file system errors
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { from, storePath, progress } = options;
  const copy = `${storePath}.restoring`;
  removeDatabase(copy);
  const mark = unusedSuffix(storePath, options.now);
  // Computing the digest and checking the content take time too.
  const copied = options.watch(copy, statSync(join(from, DATABASE), { throwIfNoEntry: false })?.size ?? 0);
  let manifest: Manifest;
  try {
    manifest = readBackup(from);
    progress(`backup of ${manifest.made_at}, up to audit record ${manifest.audit.seq}`);
    makeFolder(dirname(storePath));
    copyPrivately(join(from, DATABASE), copy);
    checkWhole(copy, manifest);
  } finally {
    copied();
  }
  const session = openReplay({ path: copy, auditFile: options.auditFile, node: options.node });
  let applied: CaughtUp;
  try {
    applied = await catchUp(session, {
      ...options,
      crlNumbersSkipped: CRL_NUMBERS_SKIPPED,
      moveAside: (path) => moveAside(path, mark),
      event: (done) => ({ type: 'store.restored', outcome: 'success', detail: summary(manifest, done) }),
    });
  } finally {
    await session.close();
  }
  progress(`applied audit records up to ${applied.upTo}`);
  sync(copy);
  const moved = [...applied.moved, ...takePlace(copy, storePath, mark)];
  const keys = OWN_KEYS.flatMap(([name, fileOf]) =>
    (name === 'otp-lookup.key' ? options.ownLookupKey : options.ownHmacKey)
      ? (restoreKey(join(from, name), fileOf(storePath), mark) ?? [])
      : [],
  );
  sync(dirname(storePath));
  return { ...applied, manifest, moved: [...moved, ...keys] };
}

function checkWhole(path: string, { audit }: Manifest): void {
  const db = openWritable(path);
  try {
    const found: unknown = db.pragma('quick_check', { simple: true });
    const head = db.prepare<[], ChainHead>('SELECT seq, hash FROM audit_head').get();
    if (found === 'ok' && head?.seq === audit.seq && head.hash === audit.hash) return;
    throw failed('BACKUP_DAMAGED', 'the backup is incomplete or damaged', {
      detail: `the database in it: ${String(found)}`,
    });
  } finally {
    db.close();
  }
}

function summary({ made_at, audit }: Manifest, { whole, upTo }: CaughtUp): string {
  const since = whole
    ? `the audit log was applied up to record ${upTo}`
    : `the audit log is incomplete; it was applied up to record ${upTo}, and unused tokens were revoked`;
  return `a backup of ${made_at}, up to record ${audit.seq}, was restored; ${since}`;
}

/** The old database keeps its name until the new one replaces it atomically. */
function takePlace(copy: string, storePath: string, mark: string): string[] {
  const aside = `${storePath}.replaced-${mark}`;
  const moved: string[] = [];
  // Remove the WAL files, which would be applied to the new database.
  for (const end of ['-wal', '-shm'])
    if (existsSync(`${storePath}${end}`)) renameSync(`${storePath}${end}`, `${aside}${end}`);
  if (existsSync(storePath)) {
    linkSync(storePath, aside);
    moved.push(aside);
  }
  renameSync(copy, storePath);
  return moved;
}

/** @returns the new name of a different key that was in its place */
function restoreKey(kept: string, place: string, mark: string): string | undefined {
  if (!existsSync(kept)) return undefined;
  if (existsSync(place) && readFileSync(place).equals(readFileSync(kept))) return undefined;
  const moved = moveAside(place, mark);
  copyPrivately(kept, place);
  return moved;
}

function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
}
