/** Makes sure that the lookup key is the one with which the lookups of the database were made. docs/guides/authentication.md says why. */
import Database from 'better-sqlite3';
import { existsSync } from 'node:fs';
import { codeOf } from '../../errors.ts';
import {
  keyCheck,
  type KeyTrouble,
  lookupKeyFile,
  type LookupKeyOptions,
  lookupKeyTrouble,
  makeLookupKey,
  readLookupKey,
} from '../lookup-key-file.ts';
import { hasLiveTokens } from '../otp-store.ts';
import { runAtOnce } from '../port.ts';
import { openReadOnly, type Db } from './database.ts';
import { SqlitePort } from './port.ts';

/**
 * Creates or checks the key.
 * @throws EstuaryError 500 `LOOKUP_KEY_MISSING`, `LOOKUP_KEY_OTHER` while tokens are live that only the old key finds;
 * 500 `LOOKUP_KEY_DAMAGED`; 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function settleLookups(db: Db, path: string, { configured, required }: LookupKeyOptions, now: number): void {
  // Under the write lock from the first read, because several processes may start concurrently.
  const settle = db.transaction((): void => {
    const held = configured === undefined ? readLookupKey(lookupKeyFile(path)) : Buffer.from(configured);
    const trouble = troubleOf(db, held, now);
    if (trouble !== undefined && required)
      throw lookupKeyTrouble(trouble, describeTrouble(trouble, path, configured !== undefined));
    if (trouble !== undefined) return;
    const key = held ?? makeLookupKey(lookupKeyFile(path));
    db.prepare<{ check: string }>(
      'INSERT INTO lookup_key (only, key_check) VALUES (1, @check) ON CONFLICT (only) DO UPDATE SET key_check = @check',
    ).run({ check: keyCheck(key) });
  });
  settle.immediate();
}

/**
 * The same check for `--check`, without changes. A missing or unreadable database has no problem with its key.
 * @throws EstuaryError 500 `LOOKUP_KEY_DAMAGED`; 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function findKeyTrouble(path: string, configured: Buffer | undefined, now: number): KeyTrouble | undefined {
  if (!existsSync(path)) return undefined;
  let db: Db | undefined;
  try {
    db = openReadOnly(path);
    return troubleOf(db, configured ?? readLookupKey(lookupKeyFile(path)), now);
  } catch (error) {
    if (error instanceof Database.SqliteError || codeOf(error).startsWith('STORE_')) return undefined;
    throw error;
  } finally {
    db?.close();
  }
}

function troubleOf(db: Db, key: Buffer | undefined, now: number): KeyTrouble | undefined {
  const known = db.prepare<[], { key_check: string }>('SELECT key_check FROM lookup_key').get();
  if (known === undefined || (key !== undefined && keyCheck(key) === known.key_check)) return undefined;
  if (!runAtOnce(hasLiveTokens(new SqlitePort(db), now))) return undefined;
  return key === undefined ? 'missing' : 'other';
}

/** A sentence for the operator. */
export function describeTrouble(trouble: KeyTrouble, path: string, configured: boolean): string {
  const where = configured ? 'otp.lookup_key' : lookupKeyFile(path);
  const what = trouble === 'missing' ? `${where} is missing` : `${where} is another key`;
  return `${what}, and some valid tokens need the previous key (restore it; or set otp.enabled = false and revoke these tokens: DELETE /admin/otp/{id})`;
}
