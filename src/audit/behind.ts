/**
 * Detects that the database is older than the audit file: a restored snapshot, or an old primary after a failover.
 *
 * After a crash the file may contain records of one transaction that the database lacks. The first record of each
 * transaction states the database's last record at that time (`stored`). A database behind that record went back in
 * time.
 */
import { closeSync, fstatSync, openSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { failed } from '../errors.ts';
import { readLines } from './file-cursor.ts';
import { type ChainHead, parseLine, type ParsedRecord } from './record.ts';

/** Bytes at the end of the file that are read first: more than most transactions write. */
const TAIL = 1 << 16;

/** Records of the audit file that the database lacks. Times are ISO 8601. */
interface Missing {
  readonly path: string;
  readonly first: number;
  readonly last: number;
  readonly from: string;
  readonly to: string;
}

/**
 * The record up to which the database was complete, according to the file's last transaction.
 * @returns 0 if the file is missing, empty or silent about it
 */
export function storedUpTo(path: string): number {
  const find = (fd: number, size: number): number => {
    for (let length = TAIL; ; length *= 8) {
      const from = Math.max(0, size - length);
      let stored = 0;
      // The first line may be partial; then it does not parse.
      for (const { text } of readLines(fd, from, size))
        if (text.includes('"stored":')) stored = parseLine(text)?.record.stored ?? stored;
      if (stored > 0 || from === 0) return stored;
    }
  };
  return withFile(path, find) ?? 0;
}

/**
 * @param head the end of the chain in the database
 * @param confirmed the last record whose commit this process knows of
 * @throws EstuaryError 500 `STORE_BEHIND`, which names the missing records, if it is certain
 */
export function refuseBehind(path: string, head: ChainHead, confirmed = 0): void {
  const missing = missingRecords(path, head);
  if (missing === undefined && confirmed <= head.seq) return;
  const { first, last, path: file } = missing ?? { first: head.seq + 1, last: confirmed, path };
  const times = missing === undefined ? '' : ` (${missing.from} to ${missing.to})`;
  throw failed('STORE_BEHIND', 'the database is older than the audit file', {
    detail: `records ${first} to ${last}${times} of ${file} are missing from the database. Connect to the current database, or accept this one with "estuary store accept-older-database"`,
  });
}

/** undefined: the database is not behind, or it is uncertain. */
export function missingRecords(path: string, head: ChainHead): Missing | undefined {
  const isEmpty = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  const file = isEmpty ? lastRotated(path) : path;
  if (file === undefined || storedUpTo(file) <= head.seq) return undefined;
  return withFile(file, (fd, size) => {
    let first: ParsedRecord | undefined;
    let last: ParsedRecord | undefined;
    let linked = false;
    for (const { text } of readLines(fd, 0, size)) {
      const record = parseLine(text);
      if (record === undefined) continue;
      // The log of another store proves nothing.
      if (record.seq === head.seq && record.hash !== head.hash) return undefined;
      if (record.seq === head.seq + 1 && record.prev_hash !== head.hash) return undefined;
      linked ||= record.prev_hash === head.hash;
      if (record.seq <= head.seq) continue;
      first ??= record;
      last = record;
    }
    if (first === undefined || last === undefined || (isEmpty && !linked)) return undefined;
    const [from, to] = [first.record.time, last.record.time];
    return { path: file, first: head.seq + 1, last: last.seq, from, to };
  });
}

/** The most recent rotated audit file, unless it is compressed. */
function lastRotated(path: string): string | undefined {
  const name = basename(path);
  const folder = dirname(path);
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return undefined;
  const files = readdirSync(folder)
    .filter((other) => other !== name && other.startsWith(name) && !other.endsWith('.gz'))
    .map((other) => join(folder, other));
  return files.toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
}

/** undefined if the file does not exist. */
function withFile<T>(path: string, read: (fd: number, size: number) => T): T | undefined {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  const fd = openSync(path, 'r');
  try {
    return read(fd, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}
