import type { AuditEvent } from '../../audit/event.ts';
import type { ChainedRecord } from '../../audit/record.ts';
import { AuditChain, type AuditHead } from '../audit-chain.ts';
import type { Db } from './database.ts';
import { type Added, type Countable, countRecords } from '../counted-records.ts';

/**
 * The audit log of one process in an SQLite store. All calls but {@link close} need the store's write lock (BEGIN IMMEDIATE), which is what
 * keeps one chain when several processes write.
 */
export class AuditLog {
  readonly #chain: AuditChain;
  readonly #readHead;
  readonly #writeHead;
  readonly #insert;
  readonly #count;
  /** Records of this transaction, which the statistics do not have yet. */
  #uncounted: ChainedRecord[] = [];

  /** @param node the name of this node, in every record that it writes */
  constructor(db: Db, path: string, node?: string) {
    this.#chain = new AuditChain(path, node);
    this.#readHead = db.prepare<[], AuditHead>('SELECT seq, hash, file_start, file_size FROM audit_head');
    this.#writeHead = db.prepare<[AuditHead]>(
      'UPDATE audit_head SET seq = @seq, hash = @hash, file_start = @file_start, file_size = @file_size',
    );
    this.#insert = db.prepare<[number, number, string, string]>(
      'INSERT INTO audit (seq, time, type, line, indexed) VALUES (?, ?, ?, ?, 0)',
    );
    this.#count = statisticsWriter(db);
  }

  /**
   * At the beginning of a transaction: {@link AuditChain.begin}.
   *
   * @param time for records about what was found, ms
   * @returns `rotated` when a new file was begun: commit that by itself and begin again
   * @throws EstuaryError 503 `AUDIT_TAMPERED`
   */
  begin(time: number): 'ready' | 'rotated' {
    this.#uncounted = [];
    const state = this.#chain.begin(this.#readHead.get(), time);
    if (state === 'rotated') this.#writeHead.run(this.#chain.head);
    this.#store();
    return state;
  }

  /** Stores records that the file has already. The caller has checked them, and sets the head. */
  adopt(records: readonly ChainedRecord[]): void {
    for (const { seq, time, type, line } of records) this.#insert.run(seq, time, type, line);
    this.#count(records);
  }

  /** Sets the end of the chain, for a store that is brought up to date. */
  setHead(head: AuditHead): void {
    this.#writeHead.run(head);
  }

  /** Makes an event the next record of this transaction; its number. */
  add(event: AuditEvent, time: number): number {
    const { seq } = this.#chain.add(event, time);
    this.#store();
    return seq;
  }

  /** {@link AuditChain.hasMoved} */
  get hasMoved(): boolean {
    return this.#chain.hasMoved;
  }

  /** Counts this transaction's records, puts them into the file and forces them to disk; the last thing before COMMIT. */
  async flush(): Promise<void> {
    this.#count(this.#uncounted);
    await this.#chain.flush();
    if (this.#chain.hasMoved) this.#writeHead.run(this.#chain.head);
  }

  probe(): readonly AuditEvent[] {
    return this.#chain.probe();
  }

  get hasWritten(): boolean {
    return this.#chain.hasWritten;
  }

  committed(): void {
    this.#chain.committed();
  }

  settle(): void {
    this.#chain.settle();
  }

  undo(): void {
    this.#chain.undo();
  }

  /** In a new transaction, when SQLite has rolled the former one back by itself. */
  undoLate(): void {
    this.#chain.undoLate(this.#readHead.get());
  }

  get path(): string {
    return this.#chain.path;
  }

  close(): void {
    this.#chain.close();
  }

  #store(): void {
    for (const record of this.#chain.take()) {
      this.#insert.run(record.seq, record.time, record.type, record.line);
      this.#uncounted.push(record);
    }
  }
}

/** Adds audit records to the counters, in the transaction that inserts them. */
export function statisticsWriter(db: Db): (records: readonly Countable[]) => void {
  const add = db.prepare<[Added]>(
    `INSERT INTO statistic (hour, ca, what, count) VALUES (@hour, @ca, @what, @count)
     ON CONFLICT (hour, ca, what) DO UPDATE SET count = count + excluded.count`,
  );
  return (records) => {
    for (const added of countRecords(records)) add.run(added);
  };
}
