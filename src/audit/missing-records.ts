/**
 * Records of the audit file that the database lacks.
 *
 * The database may be older than the file: a restored snapshot, or an old primary after a failover. After a crash the
 * file may contain records of one transaction that the database lacks. The first record of each transaction states the
 * database's last record at that time (`stored`). A database behind that record went back in time.
 */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type EstuaryError, failed, unavailable } from '../errors.ts';
import { type FileLine, readLines } from './file-cursor.ts';
import { type ChainHead, follows, parseLine, type ParsedRecord, type StoredHead } from './record.ts';

/** Bytes at the end of the file that are read first: more than most transactions write. */
const TAIL = 1 << 16;

/** The lacking records. Times are ISO 8601. */
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
  const size = sizeOf(path);
  if (size === 0) return 0;
  for (let length = TAIL; ; length *= 8) {
    const from = Math.max(0, size - length);
    let stored = 0;
    // The first line may be partial; then it does not parse.
    for (const { text } of linesOf(path, from))
      if (text.includes('"stored":')) stored = parseLine(text)?.record.stored ?? stored;
    if (stored > 0 || from === 0) return stored;
  }
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
  const isEmpty = sizeOf(path) === 0;
  const file = isEmpty ? lastRotated(path) : path;
  if (file === undefined || storedUpTo(file) <= head.seq) return undefined;
  let first: ParsedRecord | undefined;
  let last: ParsedRecord | undefined;
  let linked = false;
  for (const { text } of linesOf(file)) {
    const record = parseLine(text);
    if (record === undefined) continue;
    // The log of another store proves nothing.
    if (isOfOtherStore(record, head)) return undefined;
    linked ||= record.prev_hash === head.hash;
    if (record.seq <= head.seq) continue;
    first ??= record;
    last = record;
  }
  if (first === undefined || last === undefined || (isEmpty && !linked)) return undefined;
  return { path: file, first: head.seq + 1, last: last.seq, from: first.record.time, to: last.record.time };
}

/** Whether a record contradicts the end of the chain in the database. */
const isOfOtherStore = ({ seq, hash, prev_hash }: ParsedRecord, head: ChainHead): boolean =>
  (seq === head.seq && hash !== head.hash) || (seq === head.seq + 1 && prev_hash !== head.hash);

/** The most recent rotated audit file, unless it is compressed. */
const lastRotated = (path: string): string | undefined =>
  rotated(path)
    .filter((file) => !file.endsWith('.gz'))
    .toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];

/** What is wrong with a file that lacks the end of the chain at its place. @param size of the file, in bytes */
export const notAsWritten = (size: number, { seq, file_size }: StoredHead): string =>
  size < file_size
    ? `has ${size} bytes, but ${file_size} bytes up to record ${seq} were written`
    : `does not have record ${seq} at byte ${file_size}, where it was written`;

export const doesNotContinue = (seq: number): string =>
  `has a line after record ${seq} that does not continue the chain`;

/** `AUDIT_TAMPERED` */
export const differsFromStore = (path: string, what: string): EstuaryError =>
  unavailable('AUDIT_TAMPERED', 'the audit log differs from the store', {
    detail: `${path} ${what}; run "audit verify", and move the file away to start a new one`,
  });

/** Finds a file that a start would refuse, without changes. @throws EstuaryError 503 `AUDIT_TAMPERED` */
export function refuseOtherEnd(path: string, stored: StoredHead): void {
  const size = sizeOf(path);
  // A new file is begun.
  if (size === 0) return;
  const tail = stored.file_size === 0 ? '' : `"hash":"${stored.hash}"}`;
  const lines = linesOf(path, Math.max(0, stored.file_size - tail.length - 1));
  const end = tail === '' ? undefined : lines.next();
  if (size < stored.file_size || (end !== undefined && (end.done === true || end.value.text !== tail)))
    throw differsFromStore(path, notAsWritten(size, stored));
  let head: ChainHead = stored;
  for (const { text, whole } of lines) {
    const record = parseLine(text);
    if (whole && (record === undefined || !follows(head, record)))
      throw differsFromStore(path, doesNotContinue(head.seq));
    head = record ?? head;
  }
}

interface AuditFileState {
  readonly first: ParsedRecord;
  readonly last: ParsedRecord;
  /** Bytes up to the end of the last complete line. */
  readonly size: number;
}

/**
 * Reads both ends of the audit file, and checks that its lines form one chain that includes the record `head`.
 * @param onRecord receives the number of records read
 * @returns undefined if the file is missing or empty
 * @throws EstuaryError 503 `AUDIT_TAMPERED` if it is broken or from another store; 500 `AUDIT_TOO_OLD` if a version
 * before 0.2 wrote it
 */
export function readAuditFile(
  path: string,
  head: ChainHead,
  onRecord: (records: number) => void = () => undefined,
): AuditFileState | undefined {
  let first: ParsedRecord | undefined;
  let last: ParsedRecord | undefined;
  let [size, records, isCurrent] = [0, 0, false];
  for (const { record, end } of recordsOf(path)) {
    if (record === undefined || (last !== undefined && !follows(last, record)))
      throw tampered(path, `a line after record ${last?.seq ?? 0} does not continue the chain`);
    if (isOfOtherStore(record, head))
      throw tampered(path, 'is the log of another store: it does not have the last record of the backup');
    first ??= record;
    last = record;
    size = end;
    isCurrent ||= record.record.stored !== undefined;
    onRecord(++records);
  }
  if (first !== undefined && !isCurrent)
    throw failed('AUDIT_TOO_OLD', 'a version before 0.2 wrote the audit file', {
      detail: `${path} (move it away to restore without it)`,
    });
  return first === undefined || last === undefined ? undefined : { first, last, size };
}

function tampered(path: string, what: string): Error {
  return unavailable('AUDIT_TAMPERED', 'the audit log differs from the store', {
    detail: `${path} ${what} (move it away to restore without it)`,
  });
}

interface Since {
  readonly records: Iterable<ParsedRecord>;
  /** false: some are missing. */
  readonly whole: boolean;
}

/** The records after `head`, from the audit file, and earlier ones from rotated files and the archive. */
export function recordsSince(
  path: string,
  head: ChainHead,
  { first }: AuditFileState,
  archive: string | undefined,
): Since {
  const before = first.seq <= head.seq + 1 ? [] : linked(path, head, first, archive);
  const [earliest = first] = before;
  function* records(): Generator<ParsedRecord> {
    yield* before;
    for (const { record } of recordsOf(path)) if (record !== undefined && record.seq > head.seq) yield record;
  }
  return { records: records(), whole: earliest.seq <= head.seq || follows(head, earliest) };
}

/** The records in the other files that lead up to the audit file's first, as far back as possible. */
function linked(
  path: string,
  head: ChainHead,
  first: ParsedRecord,
  archive: string | undefined,
): readonly ParsedRecord[] {
  const byHash = new Map<string, ParsedRecord>();
  for (const file of [...rotated(path), ...filesIn(archive, (name) => name.endsWith('.jsonl'))])
    for (const { record } of recordsOf(file))
      if (record !== undefined && record.seq > head.seq && record.seq < first.seq) byHash.set(record.hash, record);
  const found: ParsedRecord[] = [];
  for (let record = byHash.get(first.prev_hash); record !== undefined; record = byHash.get(record.prev_hash))
    found.push(record);
  return found.toReversed();
}

/** Rotated files: `audit.log.1`, `audit.log-20261101.gz`. The lock of the file and its owner are not records. */
function rotated(path: string): string[] {
  const file = basename(path);
  const others = [file, `${file}.lock`, `${file}.owner`];
  return filesIn(dirname(path), (name) => name.startsWith(file) && !others.includes(name));
}

function filesIn(folder: string | undefined, isWanted: (name: string) => boolean): string[] {
  if (folder === undefined || !existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(isWanted)
    .map((name) => join(folder, name));
}

interface Found {
  /** undefined if the line is not a record. */
  readonly record: ParsedRecord | undefined;
  /** The offset after the line. */
  readonly end: number;
}

/** The complete lines of a file, in chunks unless it is compressed; empty if the file does not exist. */
function* recordsOf(path: string): Generator<Found> {
  if (!existsSync(path)) return;
  if (path.endsWith('.gz')) {
    for (const line of gunzipSync(readFileSync(path)).toString('utf8').split('\n'))
      if (line !== '') yield { record: parseLine(line), end: 0 };
    return;
  }
  for (const { text, end, whole } of linesOf(path)) if (whole) yield { record: parseLine(text), end };
}

function* linesOf(path: string, from = 0): Generator<FileLine> {
  const fd = openSync(path, 'r');
  try {
    yield* readLines(fd, from, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
