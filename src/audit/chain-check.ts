/** Verifies a chain of audit records in a store, record by record, with its file (if available) and its checkpoints. */
import { setTimeout as delay } from 'node:timers/promises';
import { type CheckpointKey, firstUnsigned, Seals } from './checkpoint.ts';
import type { Checkpoint } from './event.ts';
import type { FileCursor } from './file-cursor.ts';
import { Broken, BrokenFile, type ChainHead, follows, GENESIS_HASH, type ParsedRecord, parseLine } from './record.ts';
import type { StoredHead, StoredRecord } from './record.ts';

export type AuditVerdict =
  | {
      readonly ok: true;
      /** Number of nodes that share the store. */
      readonly nodes?: number;
      /** Records in the store, each in its node's chain. */
      readonly records: number;
      /** Earlier records that were archived, according to an `audit.archived` record. */
      readonly archived?: number;
      /** Chained lines at the end of the file that the store lacks: a write in progress, or a crash. */
      readonly ahead: number;
      /** Checkpoints with a verified signature; absent without their key. */
      readonly checkpoints?: number;
      /** Exported checkpoints that match the chain; others concern archived records. */
      readonly kept?: number;
    }
  | {
      readonly ok: false;
      /** The first broken record; null if the error is not in one record. */
      readonly seq: number | null;
      readonly problem: string;
    };

export type Whole = Extract<AuditVerdict, { ok: true }>;

export interface ChainOptions {
  /** Verifies checkpoint signatures; without it they are skipped. */
  readonly key?: CheckpointKey | undefined;
  /** Exported checkpoints that the chain must match. */
  readonly kept?: readonly Checkpoint[] | undefined;
  /** Reports progress in records from time to time. */
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** The rows that determine where a chain begins. */
interface Beginning {
  readonly first: StoredRecord | undefined;
  readonly archived: StoredRecord | undefined;
}

/** Attempts for an error in the file, and milliseconds between them. */
const ATTEMPTS = 5;
const PAUSE = 100;

const TOLD_EVERY = 1000;

export class ChainCheck {
  readonly #stored: StoredHead;
  readonly #file: FileCursor | undefined;
  readonly #options: ChainOptions;
  readonly #seals: Seals;
  readonly #begin: ChainHead;
  /** The last archived record, if it is still in the store: archived records are deleted in batches. */
  readonly #archived: ChainHead | undefined;
  #head: ChainHead;

  constructor(stored: StoredHead, rows: Beginning, file: FileCursor | undefined, options: ChainOptions) {
    this.#stored = stored;
    this.#file = file;
    this.#options = options;
    this.#seals = new Seals(options.kept ?? []);
    const { begin, archived } = beginning(rows);
    this.#begin = begin;
    this.#archived = archived;
    this.#head = begin;
    file?.skip(begin);
    this.#seals.pass(begin);
  }

  /** Checks the next row. @throws Broken */
  pass(row: StoredRecord): ParsedRecord {
    const record = nextInStore(this.#head, row, this.#stored);
    this.#head = record;
    this.#seals.pass(record, record.checkpoint);
    if (record.seq === this.#archived?.seq && record.hash !== this.#archived.hash)
      throw new Broken(record.seq, `record ${record.seq} in the store is not the one that was archived`);
    if (row.seq >= this.#stored.file_start) this.#file?.expect(row.seq, row.line);
    if (row.seq % TOLD_EVERY === 0)
      this.#options.progress?.(row.seq - this.#begin.seq, this.#stored.seq - this.#begin.seq);
    return record;
  }

  /** Checks the end of the chain. @throws Broken */
  end(): Whole {
    const head = this.#head;
    const { seq, hash } = this.#stored;
    if (head.seq < seq)
      throw new Broken(head.seq + 1, `record ${head.seq + 1} is missing from the store, which ends with ${seq}`);
    if (head.hash !== hash)
      throw new Broken(head.seq, `record ${head.seq} in the store is not the one that was written last`);
    this.#seals.end(head);
    const archived = this.#begin.seq === 0 ? {} : { archived: this.#begin.seq };
    return { ok: true, records: head.seq - this.#begin.seq, ...archived, ahead: this.#file?.surplus(head) ?? 0 };
  }

  /** Adds the checkpoints to the verdict. */
  async sealed(verdict: Whole): Promise<Whole> {
    const { key, kept } = this.#options;
    const forged = await firstUnsigned(this.#seals.found, key);
    if (forged !== undefined)
      throw new Broken(forged.record, `the checkpoint in record ${forged.record} has an invalid signature`);
    return {
      ...verdict,
      ...(key === undefined ? {} : { checkpoints: this.#seals.found.length }),
      ...(kept === undefined ? {} : { kept: this.#seals.agreed }),
    };
  }
}

/** The verdict for the first exported checkpoint with an invalid signature. */
export async function unsignedCheckpoint({ key, kept = [] }: ChainOptions): Promise<AuditVerdict | undefined> {
  const bad = await firstUnsigned(kept, key);
  if (bad === undefined) return undefined;
  return { ok: false, seq: null, problem: `the kept checkpoint of record ${bad.seq} has an invalid signature` };
}

/** Retries errors in the file, which a concurrent rotation or write may cause. */
export async function attempts(verify: () => Promise<Whole>): Promise<AuditVerdict> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await verify();
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      if (!(error instanceof BrokenFile) || attempt === ATTEMPTS)
        return { ok: false, seq: error.seq, problem: error.message };
      await delay(PAUSE);
    }
  }
}

/**
 * The start of the store's records: the first record ever, or any record within or right after the range of the newest
 * `audit.archived`.
 */
function beginning({ first, archived: newest }: Beginning): { begin: ChainHead; archived?: ChainHead } {
  if (first === undefined || first.seq <= 1) return { begin: { seq: 0, hash: GENESIS_HASH } };
  const archived = newest && parseLine(newest.line)?.archived;
  const before = first.seq - 1;
  if (archived?.last === before) return { begin: { seq: before, hash: archived.hash } };
  const record = parseLine(first.line);
  if (archived !== undefined && archived.last > before && record !== undefined)
    return { begin: { seq: before, hash: record.prev_hash }, archived: { seq: archived.last, hash: archived.hash } };
  throw new Broken(1, 'record 1 is missing from the store, and no record says that it was archived');
}

/** Checks that a row follows `head`. */
function nextInStore(head: ChainHead, row: StoredRecord, stored: StoredHead): ParsedRecord {
  const seq = head.seq + 1;
  if (row.seq !== seq) throw new Broken(seq, `record ${seq} is missing from the store`);
  if (seq > stored.seq) throw new Broken(seq, `record ${seq} in the store was inserted after the last one`);
  const record = parseLine(row.line);
  if (record === undefined) throw new Broken(seq, `record ${seq} in the store was changed: its hash does not fit`);
  if (record.seq !== seq)
    throw new Broken(seq, `record ${seq} in the store is out of order: it holds record ${record.seq}`);
  if (record.time !== row.time || record.type !== row.type)
    throw new Broken(seq, `record ${seq} in the store was changed: its time or type differs from the record`);
  if (!follows(head, record))
    throw new Broken(seq, `record ${seq} in the store does not follow record ${head.seq}: one of them was replaced`);
  return record;
}
