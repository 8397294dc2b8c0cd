/**
 * Restores a backup, then replays later events from the audit file. It works on a copy next to the store, which replaces the store at the
 * end; until then nothing changes.
 */
import { accessSync, constants, linkSync, lstatSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, type EstuaryError } from '../../errors.ts';
import { copyOpen, makeFolder, sync } from '../../folders.ts';
import { openReplay } from '../../store/sqlite/replay-session.ts';
import {
  type ConfiguredKeys,
  damaged,
  DATABASE,
  headOf,
  type Manifest,
  moveAside,
  type OpenBackup,
  ownKeys,
  unusedSuffix,
} from './backup.ts';
import { catchUp, type CatchUpOptions, type CaughtUp } from './catch-up.ts';

export interface RestoreOptions extends Pick<CatchUpOptions, 'auditFile' | 'archive' | 'cas' | 'now' | 'bar'> {
  readonly backup: Pick<OpenBackup, 'manifest' | 'files'>;
  readonly storePath: string;
  readonly otp: ConfiguredKeys;
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
  const { backup, storePath, progress } = options;
  const { manifest, files } = backup;
  const copy = `${storePath}.restoring`;
  for (const end of ['', '-wal', '-shm']) rmSync(`${copy}${end}`, { force: true });
  const mark = unusedSuffix(storePath, options.now);
  // Computing the digest and checking the content take time too.
  const copied = options.watch(copy, manifest.files[DATABASE]?.bytes ?? 0);
  try {
    progress(`backup of ${manifest.made_at}, up to audit record ${manifest.audit.seq}`);
    makeFolder(dirname(storePath));
    copyOpen(files.get(DATABASE) ?? -1, copy);
    const inIt = (damage: string): EstuaryError => damaged(`the database in it: ${damage}`);
    const { seq, hash } = headOf(copy, inIt);
    if (seq !== manifest.audit.seq || hash !== manifest.audit.hash) throw inIt('ok');
  } finally {
    copied();
  }
  const session = openReplay({ path: copy, auditFile: options.auditFile, node: options.node });
  const applied = await catchUp(session, {
    ...options,
    crlNumbersSkipped: CRL_NUMBERS_SKIPPED,
    moveAside: (path) => moveAside(path, mark),
    event: (done) => ({ type: 'store.restored', outcome: 'success', detail: summary(manifest, done) }),
  }).finally(() => session.close());
  progress(`applied audit records up to ${applied.upTo}`);
  sync(copy);
  const moved = [...applied.moved, ...takePlace(copy, storePath, mark)];
  const keys = ownKeys(storePath, options.otp).flatMap(
    ([name, place]) => restoreKey(files.get(name), place, mark) ?? [],
  );
  sync(dirname(storePath));
  return { ...applied, manifest, moved: [...moved, ...keys] };
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
    if (isThere(`${storePath}${end}`)) renameSync(`${storePath}${end}`, `${aside}${end}`);
  if (isThere(storePath)) {
    try {
      linkSync(storePath, aside);
    } catch (error) {
      // The system may allow links only to own files.
      if (codeOf(error) !== 'EPERM') throw error;
      renameSync(storePath, aside);
    }
    moved.push(aside);
  }
  renameSync(copy, storePath);
  return moved;
}

/** @returns the new name of a different key that was in its place */
function restoreKey(kept: number | undefined, place: string, mark: string): string | undefined {
  if (kept === undefined) return undefined;
  const [fresh, old] = [`${place}.restoring`, isThere(place) && isReadable(place) ? readFileSync(place) : undefined];
  rmSync(fresh, { force: true });
  copyOpen(kept, fresh);
  const isSame = old !== undefined && readFileSync(fresh).equals(old);
  const moved = isSame ? undefined : moveAside(place, mark);
  if (isSame) rmSync(fresh);
  else renameSync(fresh, place);
  return moved;
}

/** Also a link to nothing. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return lstatSync(path).isFile();
  } catch {
    return false;
  }
}
