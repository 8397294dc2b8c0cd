/** The lookup key that the server generates: 32 random bytes in a file next to the store. */
import { createHmac, randomBytes } from 'node:crypto';
import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readContentSync } from '../config/content.ts';
import { codeOf, describe, type EstuaryError, failed, unavailable } from '../errors.ts';
import { sync } from '../folders.ts';

export interface LookupKeyOptions {
  /** `otp.lookup_key`; undefined: the file next to the store, which is created if missing. */
  readonly configured: Uint8Array | undefined;
  /** Whether one-time passwords are on; without them, a store with a lost key may be opened. */
  readonly required: boolean;
}

export const MIN_LOOKUP_KEY = 32;

/**
 * A keyed hash finds a token's row. The store contains no part of a token, so without the separate key a stolen
 * database cannot be searched for guesses.
 * @param purpose so that a value of one purpose cannot replace one of another
 */
function keyedHash(key: Buffer, purpose: 'token' | 'key check', value: string): string {
  return createHmac('sha256', key).update(`estuary otp ${purpose}\0${value}`).digest('hex');
}

/** The lookup value of a token, hex. */
export function tokenLookup(key: Buffer, token: string): string {
  return keyedHash(key, 'token', token);
}

/** A value in the store that identifies a key. */
export function keyCheck(key: Buffer): string {
  return keyedHash(key, 'key check', '');
}

/** Why the lookups of a store are unusable: no key, or a different one. */
export type KeyTrouble = 'missing' | 'other';

/** @param detail what is wrong, and what to do */
export function lookupKeyTrouble(trouble: KeyTrouble, detail: string): EstuaryError {
  const code = trouble === 'missing' ? 'LOOKUP_KEY_MISSING' : 'LOOKUP_KEY_OTHER';
  return failed(code, 'the lookup key of one-time passwords is not the one of this store', { detail });
}

/** The file of a store at `storePath`. */
export function lookupKeyFile(storePath: string): string {
  return join(dirname(storePath), 'otp-lookup.key');
}

/** The key of `sha256-hmac` next to a SQLite store, unless the configuration names one. */
export const hmacKeyFile = (storePath: string): string => join(dirname(storePath), 'otp-hmac.key');

/**
 * The key in the file, or undefined without a file.
 * @throws EstuaryError 500 `LOOKUP_KEY_DAMAGED`; 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function readLookupKey(file: string): Buffer | undefined {
  let key: Buffer;
  try {
    key = readContentSync(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw unusable(error);
  }
  if (key.length >= MIN_LOOKUP_KEY) return key;
  throw failed('LOOKUP_KEY_DAMAGED', 'the lookup key of one-time passwords is damaged', {
    detail: `${file} has ${key.length} bytes instead of ${MIN_LOOKUP_KEY} or more; restore it from the backup`,
  });
}

/**
 * Creates the file atomically, readable only for its owner. Concurrent processes get the same key.
 * @throws EstuaryError 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function makeLookupKey(file: string): Buffer {
  const draft = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    writeFileSync(draft, randomBytes(MIN_LOOKUP_KEY), { flag: 'wx', mode: 0o600, flush: true });
    linkUnlessThere(draft, file);
    // Before a row depends on it.
    sync(dirname(file));
  } catch (error) {
    throw unusable(error);
  } finally {
    rmSync(draft, { force: true });
  }
  const key = readLookupKey(file);
  if (key === undefined) throw unusable(new Error(`${file} no longer exists`));
  return key;
}

function linkUnlessThere(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    // Another process was faster: use its key.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

function unusable(error: unknown): EstuaryError {
  return unavailable('LOOKUP_KEY_UNAVAILABLE', 'the lookup key of one-time passwords cannot be used', {
    detail: describe(error),
    cause: error,
  });
}
