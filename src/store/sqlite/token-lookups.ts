/**
 * What holds of tokens' lookups once a database is open: every one is a keyed hash, and the key at hand is the one
 * that they were made with. docs/authentication.md tells why.
 */
import Database from 'better-sqlite3';
import { existsSync } from 'node:fs';
import { failed } from '../../errors.ts';
import type { LookupKeyOptions } from '../calls/database-options.ts';
import { lookupKeyFile, makeLookupKey, readLookupKey } from '../lookup-key-file.ts';
import { inStatus } from '../request-state.ts';
import { keyCheck, selectorLookup } from '../token-lookup.ts';
import { openReadOnly, type Db } from './database.ts';

/** Hex digits of a lookup; a selector in clear is shorter. */
const LOOKUP_LENGTH = 64;

/** Why the lookups cannot be used: no key, or not the one that they were made with. */
export type KeyTrouble = 'missing' | 'other';

/**
 * Makes or checks the key, and hashes the selectors that still stand in clear.
 *
 * @param now milliseconds since the epoch
 * @throws EstuaryError 500 `LOOKUP_KEY_MISSING`, `LOOKUP_KEY_OTHER` while tokens live that only the former key finds;
 *   500 `LOOKUP_KEY_DAMAGED`; 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function settleLookups(db: Db, path: string, { configured, required }: LookupKeyOptions, now: number): void {
  // Under the write lock from the first look, because several processes may start at once.
  const settle = db.transaction((): boolean => {
    const held = configured === undefined ? readLookupKey(lookupKeyFile(path)) : Buffer.from(configured);
    const trouble = troubleOf(db, held, now);
    if (trouble !== undefined && required) throw troubleError(trouble, path, configured !== undefined);
    if (trouble !== undefined) return true;
    const key = held ?? makeLookupKey(lookupKeyFile(path));
    const hadTokens = db.prepare<[], { id: string }>('SELECT id FROM otp LIMIT 1').get() !== undefined;
    hashSelectors(db, key);
    return remember(db, keyCheck(key), hadTokens);
  });
  // Zeroes what an update leaves behind; not wanted where rows come and go all the time.
  db.pragma('secure_delete = ON');
  const clean = settle.immediate();
  db.pragma('secure_delete = OFF');
  if (!clean) cleanUp(db);
}

/**
 * The same question for `--check`, which changes nothing. A database that is not there, or that cannot be read now, has
 * no trouble with its key.
 *
 * @throws EstuaryError 500 `LOOKUP_KEY_DAMAGED`; 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function findKeyTrouble(path: string, configured: Buffer | undefined, now: number): KeyTrouble | undefined {
  if (!existsSync(path)) return undefined;
  let db: Db | undefined;
  try {
    db = openReadOnly(path);
    return troubleOf(db, configured ?? readLookupKey(lookupKeyFile(path)), now);
  } catch (error) {
    if (error instanceof Database.SqliteError) return undefined;
    throw error;
  } finally {
    db?.close();
  }
}

function troubleOf(db: Db, key: Buffer | undefined, now: number): KeyTrouble | undefined {
  const known = db.prepare<[], { key_check: string }>('SELECT key_check FROM lookup_key').get();
  if (known === undefined || (key !== undefined && keyCheck(key) === known.key_check)) return undefined;
  // Live: it can be used, or is what a queued request is polled with.
  const live = db
    .prepare<{ now: number; length: number }, { id: string }>(
      `SELECT id FROM otp WHERE revoked_at IS NULL AND expires_at > @now AND length(lookup) = @length AND (uses < max_uses
       OR EXISTS (SELECT 1 FROM request WHERE otp_id = otp.id AND ${inStatus(['pending', 'approved'])})) LIMIT 1`,
    )
    .get({ now, length: LOOKUP_LENGTH });
  if (live === undefined) return undefined;
  return key === undefined ? 'missing' : 'other';
}

function hashSelectors(db: Db, key: Buffer): void {
  const inClear = db.prepare<[number], { id: string; lookup: string }>(
    'SELECT id, lookup FROM otp WHERE length(lookup) <> ?',
  );
  const update = db.prepare<[string, string]>('UPDATE otp SET lookup = ? WHERE id = ?');
  for (const { id, lookup } of inClear.all(LOOKUP_LENGTH)) update.run(selectorLookup(key, lookup), id);
}

/** @returns whether nothing has to be cleaned up: where there never was a token, nothing of one is left */
function remember(db: Db, check: string, hadTokens: boolean): boolean {
  db.prepare<{ check: string; cleaned: number }>(
    `INSERT INTO lookup_key (only, key_check, cleaned) VALUES (1, @check, @cleaned)
     ON CONFLICT (only) DO UPDATE SET key_check = @check`,
  ).run({ check, cleaned: hadTokens ? 0 : 1 });
  return db.prepare<[], { cleaned: number }>('SELECT cleaned FROM lookup_key').get()?.cleaned === 1;
}

/**
 * Former versions of rows may be left in parts of the file that are free, and in the write-ahead log: writes the file
 * anew and empties the log. It takes free space of the database's size; where it fails, the next start tries again.
 */
function cleanUp(db: Db): void {
  try {
    // In memory, the copy of a large database would not fit.
    db.pragma('temp_store = FILE');
    db.exec('VACUUM');
    db.exec('UPDATE lookup_key SET cleaned = 1');
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
  } finally {
    db.pragma('temp_store = MEMORY');
  }
}

/** A sentence for the operator. */
export function describeTrouble(trouble: KeyTrouble, path: string, configured: boolean): string {
  const where = configured ? 'otp.lookup_key' : lookupKeyFile(path);
  const what = trouble === 'missing' ? `${where} is missing` : `${where} is another key`;
  return `${what}, and tokens live that only the former key finds (restore it, or with otp.enabled = false revoke them: DELETE /admin/otp/{id})`;
}

function troubleError(trouble: KeyTrouble, path: string, configured: boolean): Error {
  const code = trouble === 'missing' ? 'LOOKUP_KEY_MISSING' : 'LOOKUP_KEY_OTHER';
  return failed(code, 'the key that finds one-time passwords is not the one of this store', {
    detail: describeTrouble(trouble, path, configured),
  });
}
