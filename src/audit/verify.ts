import Database from 'better-sqlite3';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type FileLine, readLines } from './lines.ts';
import type { CheckpointKey } from './checkpoint.ts';
import type { Checkpoint } from './event.ts';
import { type ChainHead, follows, GENESIS_HASH, type ParsedRecord, parseLine } from './record.ts';

export type AuditVerdict =
  | {
      readonly ok: true;
      /** Records in the store, all of them in one chain. */
      readonly records: number;
      /** Records before them that left the store for an archive; a record says so. Absent where there are none. */
      readonly archived?: number;
      /** Well-chained lines at the end of the file that the store does not have (yet): a write under way, or a crash. */
      readonly ahead: number;
      /** Checkpoints whose signature was looked at; absent without their key. */
      readonly checkpoints?: number;
      /** Kept checkpoints that the chain agrees with; the others lie among what was archived. */
      readonly kept?: number;
    }
  | {
      readonly ok: false;
      /** The first broken record; null when it is not one record that is broken. */
      readonly seq: number | null;
      readonly problem: string;
    };

/** The end of the chain as the store keeps it. */
interface StoredHead extends ChainHead {
  readonly file_start: number;
  readonly file_size: number;
}

interface StoredRecord {
  readonly seq: number;
  readonly time: number;
  readonly type: string;
  readonly line: string;
}

/** What was found first; thrown inside this module only. */
class Broken extends Error {
  readonly seq: number | null;
  constructor(seq: number | null, problem: string) {
    super(problem);
    this.seq = seq;
  }
}

/** In the file, where a rotation or a write may have come between the look at the store and the look at the file. */
class BrokenFile extends Broken {}

/** How often a problem in the file is looked at, and milliseconds between. */
const ATTEMPTS = 5;
const PAUSE = 100;

/**
 * Verifies the audit log: the chain in the store, the chain in the file, and that both say the same. Reads only, and
 * works while a server runs. It blocks its thread while it reads: for a command, not for the server.
 *
 * @throws when the database cannot be opened or is none of Estuary's
 */
export async function verifyAudit(options: VerifyOptions): Promise<AuditVerdict> {
  const db = new Database(options.storePath, { readonly: true, fileMustExist: true, timeout: 5000 });
  try {
    const badlyKept = await firstUnsigned(options.kept ?? [], options.key);
    if (badlyKept !== undefined)
      return { ok: false, seq: null, problem: `the kept checkpoint of record ${badlyKept.seq} has another signature` };
    for (let attempt = 1; ; attempt++) {
      const seals = new Seals(options.kept ?? []);
      const verdict = verifyOnce(db, options, seals);
      if (!(verdict instanceof Broken)) return await withSeals(verdict, seals, options);
      if (!(verdict instanceof BrokenFile) || attempt === ATTEMPTS)
        return { ok: false, seq: verdict.seq, problem: verdict.message };
      await delay(PAUSE);
    }
  } finally {
    db.close();
  }
}

export interface VerifyOptions {
  readonly storePath: string;
  readonly auditFile: string;
  /** Of the checkpoints; without it, their signatures are not looked at. */
  readonly key?: CheckpointKey | undefined;
  /** Checkpoints from elsewhere, that the chain has to agree with. */
  readonly kept?: readonly Checkpoint[] | undefined;
  /** Told now and then how many records have been looked at, and of how many. */
  readonly progress?: (done: number, total: number) => void;
}

/** Records between two calls of `progress`. */
const TOLD_EVERY = 1000;

type Whole = Extract<AuditVerdict, { ok: true }>;

async function withSeals(verdict: Whole, seals: Seals, { key, kept }: VerifyOptions): Promise<AuditVerdict> {
  const forged = await firstUnsigned(seals.found, key);
  if (forged !== undefined)
    return {
      ok: false,
      seq: forged.record,
      problem: `the checkpoint in record ${forged.record} has another signature`,
    };
  return {
    ...verdict,
    ...(key === undefined ? {} : { checkpoints: seals.found.length }),
    ...(kept === undefined ? {} : { kept: seals.agreed }),
  };
}

/** The first that the key has not signed. */
async function firstUnsigned<T extends Checkpoint>(
  checkpoints: readonly T[],
  key: CheckpointKey | undefined,
): Promise<T | undefined> {
  if (key === undefined) return undefined;
  for (const checkpoint of checkpoints) if (!(await key.verify(checkpoint))) return checkpoint;
  return undefined;
}

/** How many records a checkpoint may lie behind the one that it signs: what was recorded while it was made. */
const REMEMBERED = 100_000;

/** Holds the chain against the checkpoints in it, and against those from elsewhere. */
class Seals {
  readonly found: (Checkpoint & { readonly record: number })[] = [];
  agreed = 0;
  readonly #kept: ReadonlyMap<number, string>;
  readonly #last: number;
  /** Hashes of the newest records, at `seq % REMEMBERED`. */
  readonly #hashes: string[] = [];

  constructor(kept: readonly Checkpoint[]) {
    this.#kept = new Map(kept.map(({ seq, hash }) => [seq, hash]));
    this.#last = Math.max(0, ...this.#kept.keys());
  }

  /** The next record of the chain, or the one before the first. */
  pass({ seq, hash }: ChainHead, checkpoint?: Checkpoint): void {
    this.#hashes[seq % REMEMBERED] = hash;
    const kept = this.#kept.get(seq);
    if (kept !== undefined && kept !== hash)
      throw new Broken(seq, `record ${seq} is not the one that the kept checkpoint signs: the log was rewritten`);
    if (kept !== undefined) this.agreed++;
    if (checkpoint === undefined) return;
    const signed = this.#hashes[checkpoint.seq % REMEMBERED];
    const isFar = checkpoint.seq <= seq - REMEMBERED || signed === undefined;
    if (checkpoint.seq >= seq || (!isFar && signed !== checkpoint.hash))
      throw new Broken(seq, `the checkpoint in record ${seq} is of another record ${checkpoint.seq} than the log has`);
    this.found.push({ ...checkpoint, record: seq });
  }

  end({ seq }: ChainHead): void {
    if (this.#last > seq)
      throw new Broken(
        seq + 1,
        `record ${this.#last} is missing, of which there is a kept checkpoint: the log was cut`,
      );
  }
}

function verifyOnce(db: Database.Database, options: VerifyOptions, seals: Seals): Whole | Broken {
  // One read transaction: the records and the head of one moment.
  return db.transaction(() => {
    try {
      return verifySnapshot(db, options, seals);
    } catch (error) {
      if (error instanceof Broken) return error;
      throw error;
    }
  })();
}

function verifySnapshot(db: Database.Database, { auditFile, progress }: VerifyOptions, seals: Seals): Whole {
  const stored = db.prepare<[], StoredHead>('SELECT seq, hash, file_start, file_size FROM audit_head').get();
  if (stored === undefined) throw new Broken(null, 'the store has lost the end of the audit chain');
  const file = new FileCursor(auditFile, stored);
  try {
    const { begin, archived: last } = beginning(db);
    file.skip(begin);
    let head = begin;
    seals.pass(begin);
    const rows = db.prepare<[], StoredRecord>('SELECT seq, time, type, line FROM audit ORDER BY seq');
    for (const row of rows.iterate()) {
      const record = nextInStore(head, row, stored);
      head = record;
      seals.pass(record, record.checkpoint);
      if (head.seq === last?.seq && head.hash !== last.hash)
        throw new Broken(head.seq, `record ${head.seq} in the store is not the one that was archived`);
      if (row.seq >= stored.file_start) file.expect(row.seq, row.line);
      if (row.seq % TOLD_EVERY === 0) progress?.(row.seq - begin.seq, stored.seq - begin.seq);
    }
    if (head.seq < stored.seq)
      throw new Broken(head.seq + 1, `record ${head.seq + 1} is missing from the store, which ends with ${stored.seq}`);
    if (head.hash !== stored.hash)
      throw new Broken(head.seq, `record ${head.seq} in the store is not the one that was written last`);
    seals.end(head);
    const archived = begin.seq === 0 ? {} : { archived: begin.seq };
    return { ok: true, records: head.seq - begin.seq, ...archived, ahead: file.surplus(head) };
  } finally {
    file.close();
  }
}

interface Beginning {
  /** The record before the first in the store. */
  readonly begin: ChainHead;
  /** The last that was archived, where it is still in the store: what was archived leaves it little by little. */
  readonly archived?: ChainHead;
}

/** Where the store's records begin: with the first ever, or anywhere in the run that the newest `audit.archived` stands for, or behind it. */
function beginning(db: Database.Database): Beginning {
  const first = db.prepare<[], StoredRecord>('SELECT seq, time, type, line FROM audit ORDER BY seq LIMIT 1').get();
  if (first === undefined || first.seq <= 1) return { begin: { seq: 0, hash: GENESIS_HASH } };
  const newest = "SELECT seq, time, type, line FROM audit WHERE type = 'audit.archived' ORDER BY seq DESC LIMIT 1";
  const row = db.prepare<[], StoredRecord>(newest).get();
  const archived = row && parseLine(row.line)?.archived;
  const before = first.seq - 1;
  if (archived?.last === before) return { begin: { seq: before, hash: archived.hash } };
  const record = parseLine(first.line);
  if (archived !== undefined && archived.last > before && record !== undefined)
    return { begin: { seq: before, hash: record.prev_hash }, archived: { seq: archived.last, hash: archived.hash } };
  throw new Broken(1, 'record 1 is missing from the store, and no record says that it was archived');
}

/** Checks that a row is the record after `head`. */
function nextInStore(head: ChainHead, row: StoredRecord, stored: StoredHead): ParsedRecord {
  const seq = head.seq + 1;
  if (row.seq !== seq) throw new Broken(seq, `record ${seq} is missing from the store`);
  if (seq > stored.seq) throw new Broken(seq, `record ${seq} in the store was inserted behind the last one`);
  const record = parseLine(row.line);
  if (record === undefined) throw new Broken(seq, `record ${seq} in the store was changed: its hash does not fit`);
  if (record.seq !== seq)
    throw new Broken(seq, `record ${seq} in the store is out of order: it holds record ${record.seq}`);
  if (record.time !== row.time || record.type !== row.type)
    throw new Broken(seq, `record ${seq} in the store was changed: its time or type is not the record's`);
  if (!follows(head, record))
    throw new Broken(seq, `record ${seq} in the store does not follow record ${head.seq}: one of them was replaced`);
  return record;
}

/** Goes through the audit file beside the store's records. */
class FileCursor {
  readonly #stored: StoredHead;
  readonly #fd: number | undefined;
  readonly #size: number;
  readonly #lines: Iterator<FileLine>;

  constructor(path: string, stored: StoredHead) {
    this.#stored = stored;
    this.#fd = openIfThere(path);
    this.#size = this.#fd === undefined ? 0 : fstatSync(this.#fd).size;
    const end = Math.min(this.#size, stored.file_size);
    this.#lines = this.#fd === undefined ? [].values() : readLines(this.#fd, 0, end);
    if (this.#size === 0 && stored.file_size > 0)
      throw new BrokenFile(
        stored.file_start,
        `the audit file is missing or empty; it had the records from ${stored.file_start} to ${stored.seq}`,
      );
  }

  /** Goes past the lines that the store has archived and the file still has. */
  skip(begin: ChainHead): void {
    let head: ChainHead | undefined;
    for (let seq = this.#stored.file_start; seq <= begin.seq; seq++) {
      const next = this.#lines.next();
      if (next.done === true)
        throw new BrokenFile(seq, `record ${seq} is missing from the audit file, which was cut short`);
      const record = next.value.whole ? parseLine(next.value.text) : undefined;
      if (record === undefined || record.seq !== seq) throw new BrokenFile(seq, difference(seq, next.value));
      if (head !== undefined && !follows(head, record))
        throw new BrokenFile(seq, `record ${seq} in the audit file does not follow record ${head.seq}`);
      head = record;
    }
    if (head !== undefined && head.hash !== begin.hash)
      throw new BrokenFile(begin.seq, `record ${begin.seq} in the audit file is not the one that was archived`);
  }

  /** The next line has to be this record's. */
  expect(seq: number, line: string): void {
    const next = this.#lines.next();
    if (next.done === true)
      throw new BrokenFile(seq, `record ${seq} is missing from the audit file, which was cut short`);
    if (next.value.whole && next.value.text === line) return;
    throw new BrokenFile(seq, difference(seq, next.value));
  }

  /** The lines behind the last record of the store: they have to go on with the chain. */
  surplus(last: ChainHead): number {
    const { file_size } = this.#stored;
    if (!(this.#lines.next().done ?? false) || this.#size < file_size)
      throw new BrokenFile(last.seq + 1, `the audit file goes on behind record ${last.seq}, the last of the store`);
    let head = last;
    if (this.#fd === undefined) return 0;
    for (const line of readLines(this.#fd, file_size, this.#size)) {
      // An unfinished line is a write under way or cut off by a crash; the server removes it.
      if (!line.whole) break;
      const record = parseLine(line.text);
      if (record === undefined || !follows(head, record))
        throw new BrokenFile(head.seq + 1, `the line behind record ${head.seq} in the audit file does not follow it`);
      head = record;
    }
    return head.seq - last.seq;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}

/** What the file has instead of record `seq`, in words. */
function difference(seq: number, line: FileLine): string {
  if (!line.whole) return `record ${seq} in the audit file is cut short`;
  const record = parseLine(line.text);
  if (record === undefined) return `record ${seq} in the audit file was changed: its hash does not fit`;
  if (record.seq > seq) return `record ${seq} is missing from the audit file, which has record ${record.seq} there`;
  if (record.seq < seq) return `the audit file has record ${record.seq} again where record ${seq} should be`;
  return `record ${seq} in the audit file is not the store's: it was replaced`;
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
