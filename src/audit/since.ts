/** Reads the records since a given one from the audit file, for a restored store. */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { failed, unavailable } from '../errors.ts';
import { readLines } from './file-cursor.ts';
import { type ChainHead, follows, parseLine, type ParsedRecord } from './record.ts';

export interface AuditFileState {
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
    if (record.seq === head.seq && record.hash !== head.hash) throw tampered(path, OTHER_STORE);
    if (record.seq === head.seq + 1 && record.prev_hash !== head.hash) throw tampered(path, OTHER_STORE);
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

const OTHER_STORE = 'is the log of another store: it does not have the last record of the backup';

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
  for (const file of [...beside(path), ...filesOf(archive)])
    for (const { record } of recordsOf(file))
      if (record !== undefined && record.seq > head.seq && record.seq < first.seq) byHash.set(record.hash, record);
  const found: ParsedRecord[] = [];
  for (let record = byHash.get(first.prev_hash); record !== undefined; record = byHash.get(record.prev_hash))
    found.push(record);
  return found.toReversed();
}

/** Rotated files: `audit.log.1`, `audit.log-20261101.gz`. */
function beside(path: string): string[] {
  const folder = dirname(path);
  const name = basename(path);
  return readdirSync(folder)
    .filter((other) => other !== name && other.startsWith(name))
    .map((other) => join(folder, other));
}

function filesOf(folder: string | undefined): string[] {
  if (folder === undefined || !existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
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
  const fd = openSync(path, 'r');
  try {
    for (const { text, end, whole } of readLines(fd, 0, fstatSync(fd).size))
      if (whole) yield { record: parseLine(text), end };
  } finally {
    closeSync(fd);
  }
}
