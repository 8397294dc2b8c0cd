import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  differsFromStore,
  doesNotContinue,
  missingRecords,
  notAsWritten,
  refuseBehind,
} from '../audit/missing-records.ts';
import type { AuditEvent } from '../audit/event.ts';
import { AuditFile } from '../audit/file.ts';
import { chain, type ChainedRecord, follows, parseLine, type StoredHead } from '../audit/record.ts';
import { unavailable } from '../errors.ts';

/** The end of the chain in the store, and its position in the current audit file. */
export type AuditHead = StoredHead;

/**
 * A hash-chained audit log: the records of a transaction, which its driver stores, and their lines in the file. All
 * calls except {@link close} require the lock on this chain.
 *
 * The lines are on disk before the COMMIT, so a crash can leave lines ahead of the store, never behind it. `begin`
 * finds them by the size and the last hash in the store.
 */
export class AuditChain {
  readonly #file: AuditFile;
  readonly #node: string | undefined;
  /** The head in the store at the start of the transaction. */
  #found: AuditHead | undefined;
  /** The new head, including this transaction. */
  #head: AuditHead = { seq: 0, hash: '', file_start: 1, file_size: 0 };
  #records: ChainedRecord[] = [];
  #lines: string[] = [];
  /** The events of {@link reported}. */
  #events: AuditEvent[] = [];
  /** The file's size before and after this transaction's lines. */
  #before = 0;
  #after = 0;
  /** The head after the last commit known to this process. */
  #confirmed: AuditHead | undefined;
  /** Whether the last write to the file failed. */
  #failing = false;

  /** @param node the name of this node */
  constructor(path: string, node?: string) {
    this.#node = node;
    this.#file = new AuditFile(path);
  }

  /**
   * Checks the file at the start of a transaction: it must match the store, or be ahead of it by lines of a change that
   * did not commit, which are adopted.
   * @param found the head in the store
   * @param time for records about the findings
   * @returns `rotated` if a new file was begun: commit the new {@link head} alone and begin again, so that a crash in
   * the first write to the new file is not taken for truncation
   * @throws EstuaryError 500 `STORE_BEHIND`; 503 `AUDIT_TAMPERED`
   */
  begin(found: AuditHead | undefined, time: number): 'ready' | 'rotated' {
    if (found === undefined) throw this.#tampered('the store has lost the end of the audit chain');
    this.#records = [];
    this.#lines = [];
    // A transaction whose COMMIT got no answer was committed if the store has its last record.
    if (found.hash !== this.#head.hash) this.#events = [];
    this.#found = found;
    this.#head = found;
    const size = this.#file.open();
    this.#before = size;
    this.#after = size;
    this.#refuseUnconfirmed(found, size, time);
    const isAsWritten = size >= found.file_size && this.#hasTail(found);
    if (size !== found.file_size || !isAsWritten) refuseBehind(this.path, found);
    if (size === 0 && this.#head.file_size > 0) {
      this.#head = { ...this.#head, file_start: this.#head.seq + 1, file_size: 0 };
      return 'rotated';
    }
    if (!isAsWritten) throw this.#tampered(notAsWritten(size, found));
    if (size > this.#head.file_size) this.#adopt(size, time);
    else if (size === 0 && this.#head.seq > 0) {
      const detail = `started a new audit file; the previous one ended with record ${this.#head.seq}`;
      this.add({ type: 'audit.rotated', outcome: 'success', detail }, time);
    }
    return 'ready';
  }

  add(event: AuditEvent, time: number): ChainedRecord {
    const stored = this.#lines.length === 0 ? this.#found?.seq : undefined;
    const record = chain(this.#head, event, time, this.#node, stored);
    this.#records.push(record);
    this.#events.push(event);
    this.#head = { ...this.#head, seq: record.seq, hash: record.hash };
    this.#lines.push(record.line);
    return record;
  }

  /** The records that the store lacks, in order; each is returned once. */
  take(): readonly ChainedRecord[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }

  /** The head to store at the end of this transaction. */
  get head(): AuditHead {
    return this.#head;
  }

  /** Whether the head has changed. */
  get hasMoved(): boolean {
    return this.#head.seq !== this.#found?.seq || this.#head.file_start !== this.#found.file_start;
  }

  /** Writes and syncs this transaction's records; then the head is stored, then the COMMIT. */
  async flush(): Promise<void> {
    if (this.#lines.length > 0) {
      const data = Buffer.from(`${this.#lines.join('\n')}\n`, 'utf8');
      this.#after = this.#before + data.length;
      this.#head = { ...this.#head, file_size: this.#after };
      this.#failing = true;
      await this.#file.append(data);
      this.#failing = false;
    }
  }

  /**
   * Checks whether the file is writable, without a temporary byte, which would make followers read the file from the
   * start: it opens the file for writing, and after a failed write requires a successful one.
   * @returns the record to write for that
   */
  probe(): readonly AuditEvent[] {
    this.#file.checkAccess();
    if (!this.#failing) return [];
    return [{ type: 'audit.recovered', outcome: 'success', detail: 'the audit file can be written again' }];
  }

  /** Whether lines of this transaction were written, at least partly. */
  get hasWritten(): boolean {
    return this.#after !== this.#before;
  }

  /** The transaction is committed: a database without it is an older one. */
  committed(): void {
    this.#confirmed = this.#head;
    this.settle();
  }

  /** The events of the committed records, each once. */
  reported(): readonly AuditEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** The transaction is over and cannot be undone. */
  settle(): void {
    this.#before = this.#after;
  }

  /** Removes this transaction's lines from the file, before its ROLLBACK. */
  undo(): void {
    if (this.hasWritten) this.#file.truncate(this.#before);
    this.#after = this.#before;
    this.#events = [];
  }

  /**
   * {@link undo} in a new transaction, after SQLite rolled back the former one and so dropped the lock. If another
   * process has adopted the lines, they stay.
   */
  undoLate(head: AuditHead | undefined): void {
    if (head !== undefined && head.seq === this.#found?.seq && this.#file.open() === this.#after) this.undo();
  }

  get path(): string {
    return this.#file.path;
  }

  close(): void {
    this.#file.close();
  }

  /**
   * The file alone does not prove that the database lost its last transaction, since a crash before the COMMIT looks
   * the same. This process knows, and records it in the file for the next start.
   */
  #refuseUnconfirmed(found: AuditHead, size: number, time: number): void {
    const confirmed = this.#confirmed;
    if (confirmed === undefined || found.seq >= confirmed.seq) return;
    if (size === confirmed.file_size && missingRecords(this.path, found) === undefined) {
      const detail = `the database ends with record ${found.seq}, and had record ${confirmed.seq}`;
      const event: AuditEvent = { type: 'store.behind', outcome: 'failure', detail };
      this.#file.appendSync(Buffer.from(`${chain(confirmed, event, time, this.#node, confirmed.seq).line}\n`, 'utf8'));
    }
    refuseBehind(this.path, found, confirmed.seq);
  }

  /** Whether the file contains the record at the head's position. */
  #hasTail({ hash, file_size }: AuditHead): boolean {
    if (file_size === 0) return true;
    const tail = Buffer.from(`"hash":"${hash}"}\n`);
    return this.#file.tail(file_size, tail.length).equals(tail);
  }

  #adopt(size: number, time: number): void {
    const first = this.#head.seq + 1;
    let unfinished = 0;
    for (const line of this.#file.lines(this.#head.file_size, size)) {
      if (!line.whole) {
        unfinished = line.end - line.start;
        this.#before = line.start;
        this.#file.truncate(line.start);
        break;
      }
      const record = parseLine(line.text);
      if (record?.seq === first && record.record.stored === undefined)
        throw this.#tampered('contains records of a version before 0.2');
      if (record === undefined || !follows(this.#head, record)) throw this.#tampered(doesNotContinue(this.#head.seq));
      this.#records.push(record);
      this.#events.push(record.record);
      this.#head = { ...this.#head, seq: record.seq, hash: record.hash, file_size: line.end };
    }
    this.#after = this.#before;
    this.add(
      { type: 'audit.recovered', outcome: 'success', detail: recovery(first, this.#head.seq, unfinished) },
      time,
    );
  }

  #tampered(what: string): Error {
    return differsFromStore(this.path, what);
  }
}

/** Describes what a crash left. */
function recovery(first: number, last: number, unfinished: number): string {
  const parts: string[] = [];
  const count = last - first + 1;
  if (count === 1) parts.push(`1 record (${last}) was written before a change that did not commit`);
  if (count > 1) parts.push(`${count} records (${first} to ${last}) were written before a change that did not commit`);
  if (unfinished > 0) parts.push(`an unfinished record of ${unfinished} bytes was removed from the audit file`);
  return parts.join('; ');
}

/** Minimum free bytes: room for some thousand audit records. */
export const MIN_FREE = 4 << 20;

/** @throws EstuaryError 503 `AUDIT_UNAVAILABLE` if the disk has no room for audit records */
export function refuseFullDisk(auditFile: string): void {
  const { bavail, bsize } = statfsSync(dirname(auditFile));
  if (bavail * bsize < MIN_FREE)
    throw unavailable('AUDIT_UNAVAILABLE', 'the audit log cannot be written', {
      detail: `only ${bavail * bsize} bytes are free in the folder of ${auditFile}`,
    });
}
