/** Copies the store of a running server, without a lock and without changes to the store. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Type from 'typebox';
import { Check } from 'typebox/value';
import type { ChainHead } from '../../audit/record.ts';
import type { Config } from '../../config/schema.ts';
import { codeOf, describe, type EstuaryError, failed } from '../../errors.ts';
import { makeFolder, sync } from '../../folders.ts';
import { hmacKeyFile, lookupKeyFile } from '../../store/lookup-key-file.ts';
import { damageOf, isDamage, openReadOnly, toEstuaryError } from '../../store/sqlite/database.ts';
import { VERSION } from '../../version.ts';

const CHUNK = 1 << 20;

/** Copies a file and syncs the copy, which has mode 0600. */
export function copyPrivately(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  chmodSync(to, 0o600);
  sync(to);
}

/** @returns hex SHA-256 */
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

/** Renames a file out of the way. @param mark a time stamp @returns its new name; undefined if it did not exist */
export function moveAside(path: string, mark: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  const aside = `${path}.replaced-${mark}`;
  renameSync(path, aside);
  return aside;
}

/** A time stamp that is unused as a suffix for {@link moveAside}. */
export function unusedSuffix(path: string, now: number): string {
  const when = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  let mark = when;
  for (let n = 2; existsSync(`${path}.replaced-${mark}`); n++) mark = `${when}-${n}`;
  return mark;
}

/**
 * `backup.json`: describes a backup, with digests of its files. It is written last, so a folder without it is not a
 * backup.
 */
const MANIFEST = 'backup.json';
export const DATABASE = 'est.db';
const LOOKUP_KEY = 'otp-lookup.key';
const HMAC_KEY = 'otp-hmac.key';
/** Keys that the server creates next to the store, by their names in a backup, unless `[otp]` has them. */
const OWN_KEYS = [
  [LOOKUP_KEY, lookupKeyFile, 'lookup_key'],
  [HMAC_KEY, hmacKeyFile, 'hmac_key'],
] as const;
const KEYS: readonly string[] = OWN_KEYS.map(([name]) => name);

/** What `[otp]` has instead of a key next to the store. */
export type ConfiguredKeys = Partial<Readonly<Record<'lookup_key' | 'hmac_key', unknown>>>;

/** The keys next to the store that belong to it: name in a backup, and path. */
export const ownKeys = (storePath: string, otp: ConfiguredKeys) =>
  OWN_KEYS.flatMap(([name, fileOf, key]) => (otp[key] === undefined ? [[name, fileOf(storePath)] as const] : []));

const Manifest = Type.Object({
  format: Type.Literal(1),
  /** ISO 8601 UTC. */
  made_at: Type.String(),
  version: Type.String(),
  /** The end of the audit log in the backup. */
  audit: Type.Object({ seq: Type.Integer(), hash: Type.String() }),
  files: Type.Record(Type.String(), Type.Object({ bytes: Type.Integer(), sha256: Type.String() })),
});

export type Manifest = Type.Static<typeof Manifest>;

function describeFiles(folder: string, names: readonly string[]): Manifest['files'] {
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name);
      return [name, { bytes: statSync(path).size, sha256: digestOf(path) }];
    }),
  );
}

/** A backup whose files are open, because only root may be able to open them. */
export interface OpenBackup {
  readonly manifest: Manifest;
  /** Descriptors by name. */
  readonly files: ReadonlyMap<string, number>;
  close(): void;
}

/** Checks and opens a backup. @throws as {@link readBackup} */
export function openBackup(folder: string): OpenBackup {
  const manifest = readBackup(folder);
  const names = [DATABASE, ...KEYS].filter((name) => existsSync(join(folder, name)));
  const files = new Map(names.map((name) => [name, openSync(join(folder, name), 'r')]));
  return {
    manifest,
    files,
    close: () => {
      for (const fd of files.values()) closeSync(fd);
    },
  };
}

/** Reads the manifest and checks its files. @throws EstuaryError 500 `BACKUP_DAMAGED` */
function readBackup(folder: string): Manifest {
  let manifest: unknown;
  try {
    manifest = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
  } catch (error) {
    const isAbsent = ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
    const none = `${folder} has no ${MANIFEST}. Name the folder that "estuary backup" wrote`;
    throw damaged(isAbsent ? none : `${join(folder, MANIFEST)}: ${describe(error)}`);
  }
  if (!Check(Manifest, manifest)) throw damaged(`${join(folder, MANIFEST)} is not a backup manifest`);
  if (manifest.files[DATABASE] === undefined) throw damaged(`${join(folder, MANIFEST)} names no ${DATABASE}`);
  for (const [name, { bytes, sha256 }] of Object.entries(manifest.files)) {
    // The key may be stored elsewhere.
    if (KEYS.includes(name) && statSync(join(folder, name), { throwIfNoEntry: false }) === undefined) continue;
    if (![DATABASE, ...KEYS].includes(name)) throw damaged(`${join(folder, MANIFEST)} names ${name}`);
    const path = join(folder, name);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size !== bytes || digestOf(path) !== sha256) throw damaged(`${path} is not the file that was backed up`);
  }
  return manifest;
}

export const damaged = (detail: string): EstuaryError =>
  failed('BACKUP_DAMAGED', 'the backup is incomplete or damaged', { detail });

/** @throws EstuaryError 500 `STORE_NOT_A_FILE` for PostgreSQL, which has its own tools */
export function requireFile(driver: Config['store']['driver']): void {
  if (driver === 'sqlite') return;
  throw failed(
    'STORE_NOT_A_FILE',
    'store.driver is "postgres": back up and restore the database with PostgreSQL\'s tools: continuous archiving with point-in-time recovery (pg_basebackup), or pg_dump and pg_restore (docs/guides/postgresql.md).',
  );
}

export interface BackupOptions {
  readonly storePath: string;
  readonly otp: ConfiguredKeys;
  /** A missing or empty folder. */
  readonly to: string;
  readonly now: () => number;
  readonly progress: (text: string) => void;
}

/**
 * @returns the content of `backup.json`
 * @throws EstuaryError 500 `BACKUP_EXISTS`, or an error that prevents reading the store; file system errors
 */
export function backUp({ storePath, otp, to, now, progress }: BackupOptions): Manifest {
  if (!existsSync(storePath))
    throw failed('STORE_FAILED', 'there is no store to back up', { detail: `${storePath} does not exist` });
  makeFolder(to);
  if (readdirSync(to).length > 0)
    throw failed('BACKUP_EXISTS', 'the folder of the backup is not empty', {
      detail: `${to}. Name another folder in --to`,
    });
  const made_at = new Date(now()).toISOString();
  try {
    progress(`copying ${storePath} (${bytesOf(storePath)} bytes)`);
    const audit = copyDatabase(storePath, join(to, DATABASE));
    progress(`checked: complete up to audit record ${audit.seq}`);
    const names = [DATABASE];
    for (const [name, key] of ownKeys(storePath, otp)) {
      if (!existsSync(key)) continue;
      copyPrivately(key, join(to, name));
      names.push(name);
    }
    const manifest: Manifest = { format: 1, made_at, version: VERSION, audit, files: describeFiles(to, names) };
    writeFileSync(join(to, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true });
    sync(to);
    return manifest;
  } catch (error) {
    for (const name of [DATABASE, ...KEYS, MANIFEST]) rmSync(join(to, name), { force: true });
    throw error;
  }
}

/** Bytes of the store including its WAL, which in a new store holds everything. 0 if it does not exist. */
export function bytesOf(storePath: string): number {
  const sizes = ['', '-wal'].map((suffix) => statSync(`${storePath}${suffix}`, { throwIfNoEntry: false })?.size ?? 0);
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Copies in one read transaction, unaffected by writes; the copy has no free pages. */
function copyDatabase(from: string, to: string): ChainHead {
  // Create it first: SQLite would make it world-readable.
  closeSync(openSync(to, 'wx', 0o600));
  const db = openReadOnly(from);
  try {
    db.prepare('VACUUM INTO ?').run(to);
  } catch (error) {
    throw isDamage(error) ? toEstuaryError(error, from) : new Error(`cannot write ${to}: ${describe(error)}`);
  } finally {
    db.close();
  }
  sync(to);
  return headOf(to, (damage) => failed('STORE_FAILED', 'the store is damaged', { detail: `${from}: ${damage}` }));
}

/** The end of the audit log in a copy, which must be whole. */
export function headOf(copy: string, toError: (damage: string) => EstuaryError): ChainHead {
  const db = openReadOnly(copy);
  try {
    const damage = damageOf(db);
    const head = db.prepare<[], ChainHead>('SELECT seq, hash FROM audit_head').get();
    if (damage !== undefined || head === undefined) throw toError(damage ?? 'ok');
    return head;
  } finally {
    db.close();
  }
}
