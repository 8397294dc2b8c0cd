/** The lookup key that the server makes for itself: 32 random bytes in a file beside the store. */
import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type EstuaryError, failed, unavailable } from '../errors.ts';

/**
 * How a token finds its row: by a keyed hash. No character of a token is in the store, and without the key, which is
 * kept apart from it, a stolen database cannot even be searched for a guess.
 */

/** Bytes that a lookup key has at least. */
export const MIN_LOOKUP_KEY = 32;

/** A purpose for each value under the key, so that none can stand for another. */
type Purpose = 'token' | 'key check';

function keyedHash(key: Buffer, purpose: Purpose, value: string): string {
  return createHmac('sha256', key).update(`estuary otp ${purpose}\0${value}`).digest('hex');
}

/** What a token's row is found by, hex. */
export function tokenLookup(key: Buffer, token: string): string {
  return keyedHash(key, 'token', token);
}

/** What the store remembers of a key, to know it again. */
export function keyCheck(key: Buffer): string {
  return keyedHash(key, 'key check', '');
}

/** Where it is, for a store in the file `storePath`. */
export function lookupKeyFile(storePath: string): string {
  return join(dirname(storePath), 'otp-lookup.key');
}

/**
 * The key in the file, or undefined where there is no file.
 *
 * @throws EstuaryError 500 `LOOKUP_KEY_DAMAGED`; 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function readLookupKey(file: string): Buffer | undefined {
  let key: Buffer;
  try {
    key = readFileSync(file);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw unusable(error);
  }
  if (key.length >= MIN_LOOKUP_KEY) return key;
  throw failed('LOOKUP_KEY_DAMAGED', 'the lookup key of one-time passwords is damaged', {
    detail: `${file} has ${key.length} bytes instead of ${MIN_LOOKUP_KEY} or more; restore it from the backup`,
  });
}

/**
 * Makes the file, readable for its owner only. It is there whole or not at all, and where several processes make it at
 * once, all of them get the same key.
 *
 * @throws EstuaryError 503 `LOOKUP_KEY_UNAVAILABLE`
 */
export function makeLookupKey(file: string): Buffer {
  const draft = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    const descriptor = openSync(draft, 'wx', 0o600);
    try {
      writeSync(descriptor, randomBytes(MIN_LOOKUP_KEY));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    linkUnlessThere(draft, file);
    // Before a row depends on it.
    syncFolder(dirname(file));
  } catch (error) {
    throw unusable(error);
  } finally {
    rmSync(draft, { force: true });
  }
  const key = readLookupKey(file);
  if (key === undefined) throw unusable(new Error(`${file} has vanished`));
  return key;
}

function linkUnlessThere(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    // Another process was faster: its key is the key.
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

function unusable(error: unknown): EstuaryError {
  return unavailable('LOOKUP_KEY_UNAVAILABLE', 'the lookup key of one-time passwords cannot be used', {
    detail: describe(error),
    cause: error,
  });
}
