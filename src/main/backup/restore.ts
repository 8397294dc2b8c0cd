/**
 * Puts a backup in the store's place, and into it what the audit file tells of since. All of it happens on a copy beside the store, which
 * takes the store's place in the end; until then everything is as it was.
 */
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readAuditFile, recordsSince, type AuditFileState } from '../../audit/since.ts';
import type { ChainHead } from '../../audit/record.ts';
import { failed } from '../../errors.ts';
import { makeFolder } from '../../folders.ts';
import { lookupKeyFile } from '../../store/lookup-key-file.ts';
import { AuditLog } from '../../store/sqlite/audit-log.ts';
import { openWritable, type Db } from '../../store/sqlite/database.ts';
import { replayer, type Replayed } from '../../store/sqlite/replay.ts';
import { copyPrivately, DATABASE, LOOKUP_KEY, type Manifest, moveAside, readBackup, sync } from './backup.ts';

export interface RestoreOptions {
  readonly from: string;
  readonly storePath: string;
  readonly auditFile: string;
  /** `[audit] archive`. */
  readonly archive: string | undefined;
  readonly ownLookupKey: boolean;
  readonly node: string;
  /** The labels of the CAs. */
  readonly cas: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly progress: (text: string) => void;
  /** Shows how far the file is that is written, of so many bytes, until what it gives is called. */
  readonly watch: (file: string, bytes: number) => () => void;
  /** Shows how far a work on audit records is. */
  readonly bar: (what: string) => Bar;
}

interface Bar {
  readonly update: (records: number, of?: number) => void;
  readonly end: () => void;
}

export interface Restored extends Replayed {
  readonly manifest: Manifest;
  /** The last audit record that was applied; that of the backup where there was none. */
  readonly upTo: number;
  /** Whether the audit file told of everything since. */
  readonly whole: boolean;
  /** Unused tokens that were revoked, because they may have been used. */
  readonly revokedTokens: number;
  /** Files that were there and have other names now. */
  readonly moved: readonly string[];
}

/** CRL numbers that are left out where it is not known which were used. */
const CRL_NUMBERS_SKIPPED = 1_000_000;

/**
 * The caller holds the store's lock.
 *
 * @throws EstuaryError 500 `BACKUP_DAMAGED`; 503 `AUDIT_TAMPERED` where the audit file is broken or another store's; errors of the file system
 */
export function restore(options: RestoreOptions): Restored {
  const { from, storePath, progress } = options;
  const copy = `${storePath}.restoring`;
  removeDatabase(copy);
  const mark = freeMark(storePath, options.now);
  // Its digest and the check of what is in it take their time as well.
  const copied = options.watch(copy, statSync(join(from, DATABASE), { throwIfNoEntry: false })?.size ?? 0);
  let db: Db | undefined;
  let manifest: Manifest;
  let applied: Applied;
  try {
    try {
      manifest = readBackup(from);
      progress(`backup of ${manifest.made_at}, up to audit record ${manifest.audit.seq}`);
      makeFolder(dirname(storePath));
      copyPrivately(join(from, DATABASE), copy);
      db = openWritable(copy);
      checkWhole(db, manifest);
    } finally {
      copied();
    }
    applied = bringUpToDate(db, manifest, options, mark);
    db.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    db?.close();
  }
  sync(copy);
  const moved = [...applied.moved, ...takePlace(copy, storePath, mark)];
  const key = options.ownLookupKey ? restoreLookupKey(from, storePath, mark) : undefined;
  sync(dirname(storePath));
  return { ...applied, manifest, moved: key === undefined ? moved : [...moved, key] };
}

type Applied = Omit<Restored, 'manifest'>;

function checkWhole(db: Db, { audit }: Manifest): void {
  const found: unknown = db.pragma('quick_check', { simple: true });
  const head = db.prepare<[], ChainHead>('SELECT seq, hash FROM audit_head').get();
  if (found === 'ok' && head?.seq === audit.seq && head.hash === audit.hash) return;
  throw failed('BACKUP_DAMAGED', 'this is no whole backup', { detail: `the database in it: ${String(found)}` });
}

function bringUpToDate(db: Db, manifest: Manifest, options: RestoreOptions, mark: string): Applied {
  const { auditFile, node, now, progress } = options;
  const file = withBar(options, 'reading the audit log', (bar) => readAuditFile(auditFile, manifest.audit, bar.update));
  const log = new AuditLog(db, auditFile, node);
  db.exec('BEGIN IMMEDIATE');
  try {
    const { whole, upTo, replayed } = withBar(options, 'applying the audit log', (bar) =>
      replay(db, manifest.audit, file, options, bar),
    );
    progress(file === undefined ? `${auditFile} is missing or empty` : `applied audit records up to ${upTo}`);
    const revokedTokens = whole ? [] : forgetWhatIsUnknown(db, now, options.cas);
    // The lists of the backup are old, and lack what was revoked since.
    db.exec('UPDATE crl SET number = NULL, this_update = NULL, next_update = NULL, der = NULL');
    // A file that does not lead on from the backup cannot be gone on with.
    const aside = whole ? undefined : moveAside(auditFile, mark);
    log.begin(now);
    for (const { id, client_id } of revokedTokens)
      log.add(
        {
          type: 'otp.revoked',
          outcome: 'success',
          subject: client_id,
          detail: `token ${id}: it may have been used since the backup`,
        },
        now,
      );
    log.add({ type: 'store.restored', outcome: 'success', detail: summary(manifest, upTo, whole) }, now);
    log.flush();
    db.exec('COMMIT');
    log.settle();
    const moved = aside === undefined ? [] : [aside];
    return { ...replayed, upTo, whole, revokedTokens: revokedTokens.length, moved };
  } catch (error) {
    if (db.inTransaction) {
      log.undo();
      db.exec('ROLLBACK');
    }
    throw error;
  } finally {
    log.close();
  }
}

function withBar<T>({ bar }: RestoreOptions, what: string, work: (bar: Bar) => T): T {
  const shown = bar(what);
  try {
    return work(shown);
  } finally {
    shown.end();
  }
}

function summary({ made_at, audit }: Manifest, upTo: number, whole: boolean): string {
  const since = whole
    ? `the audit log was applied up to record ${upTo}`
    : `what happened since is not known in full; it was applied up to record ${upTo}, and unused tokens were revoked`;
  return `a backup of ${made_at}, up to record ${audit.seq}, was restored; ${since}`;
}

interface Replay {
  readonly whole: boolean;
  readonly upTo: number;
  readonly replayed: Replayed;
}

/** Applies the records since, and makes the end of the chain what the next record follows. */
function replay(
  db: Db,
  head: ChainHead,
  file: AuditFileState | undefined,
  { auditFile, archive }: RestoreOptions,
  bar: Bar,
): Replay {
  const { apply, replayed } = replayer(db);
  const setHead = db.prepare<object>(
    'UPDATE audit_head SET seq = @seq, hash = @hash, file_start = @file_start, file_size = @file_size',
  );
  // Of a file that ends before the backup, what came after is gone.
  if (file === undefined || file.last.seq < head.seq) {
    setHead.run({ ...head, file_start: head.seq + 1, file_size: 0 });
    return { whole: false, upTo: head.seq, replayed };
  }
  const records = recordsSince(auditFile, head, file, archive);
  let next = records.next();
  for (let n = 1; next.done !== true; next = records.next(), n++) {
    apply(next.value);
    bar.update(n, file.last.seq - head.seq);
  }
  if (!next.value.whole) {
    // The chain goes on from the backup: between, records are missing.
    db.prepare<[number]>('DELETE FROM audit WHERE seq > ?').run(head.seq);
    setHead.run({ ...head, file_start: head.seq + 1, file_size: 0 });
  } else {
    const { seq, hash } = file.last;
    setHead.run({ seq, hash, file_start: file.first.seq, file_size: file.size });
  }
  return { whole: next.value.whole, upTo: file.last.seq, replayed };
}

/** What may have been used or given out since counts as used and given out. */
function forgetWhatIsUnknown(db: Db, now: number, cas: readonly string[]) {
  const tokens = db
    .prepare<[number, number], { id: string; client_id: string }>(
      `UPDATE otp SET revoked_at = ? WHERE revoked_at IS NULL AND uses < max_uses AND expires_at > ?
       RETURNING id, client_id`,
    )
    .all(now, now);
  // Closed at the start, they would give uses back.
  db.exec('DELETE FROM reservation');
  // Who has signed out since is not to be signed in again.
  db.exec('DELETE FROM session');
  const skip = db.prepare<[string, number]>(
    `INSERT INTO crl (ca, last_number) VALUES (?, ?) ON CONFLICT (ca) DO UPDATE SET last_number = last_number + excluded.last_number`,
  );
  const known = db.prepare<[], { ca: string }>('SELECT ca FROM crl').all();
  for (const ca of new Set([...cas, ...known.map((row) => row.ca)])) skip.run(ca, CRL_NUMBERS_SKIPPED);
  return tokens;
}

/** The former database keeps its name until the new one has it, in one step. */
function takePlace(copy: string, storePath: string, mark: string): string[] {
  const aside = `${storePath}.replaced-${mark}`;
  const moved: string[] = [];
  // Without its log, which would be taken for that of the new one.
  for (const end of ['-wal', '-shm'])
    if (existsSync(`${storePath}${end}`)) renameSync(`${storePath}${end}`, `${aside}${end}`);
  if (existsSync(storePath)) {
    linkSync(storePath, aside);
    moved.push(aside);
  }
  renameSync(copy, storePath);
  return moved;
}

/** @returns the new name of another key that was in its place */
function restoreLookupKey(from: string, storePath: string, mark: string): string | undefined {
  const kept = join(from, LOOKUP_KEY);
  const place = lookupKeyFile(storePath);
  if (!existsSync(kept)) return undefined;
  if (existsSync(place) && readFileSync(place).equals(readFileSync(kept))) return undefined;
  const moved = moveAside(place, mark);
  copyPrivately(kept, place);
  return moved;
}

/** When, as a part of names that are not taken. */
function freeMark(storePath: string, now: number): string {
  const when = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  let mark = when;
  for (let n = 2; existsSync(`${storePath}.replaced-${mark}`); n++) mark = `${when}-${n}`;
  return mark;
}

function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
}
