import type { ChainedRecord } from '../../audit/record.ts';
import { AuditChain, type AuditHead } from '../audit-chain.ts';
import type { Db } from './database.ts';
import { type Added, type Countable, countRecords } from '../statistics-store.ts';

/**
 * The audit log of one process in an SQLite store. All calls except `chain.close` require the store's write lock (BEGIN
 * IMMEDIATE), which protects the chain from other writers.
 */
export class AuditLog {
  readonly chain: AuditChain;
  readonly #readHead;
  readonly #writeHead;
  readonly #insert;
  readonly #count;

  /** @param node the name of this node */
  constructor(db: Db, path: string, node?: string) {
    this.chain = new AuditChain(path, node);
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
   * {@link AuditChain.begin}.
   * @param time for records about the findings
   * @returns `rotated` if a new file was begun: commit that alone and begin again
   * @throws EstuaryError 503 `AUDIT_TAMPERED`
   */
  begin(time: number): 'ready' | 'rotated' {
    const state = this.chain.begin(this.#readHead.get(), time);
    if (state === 'rotated') this.#writeHead.run(this.chain.head);
    return state;
  }

  /** Stores and counts records. The caller has checked them and sets the head. */
  adopt(records: readonly ChainedRecord[]): void {
    for (const { seq, time, type, line } of records) this.#insert.run(seq, time, type, line);
    this.#count(records);
  }

  /** Sets the end of the chain after a replay. */
  setHead(head: AuditHead): void {
    this.#writeHead.run(head);
  }

  /** Stores, counts, writes and syncs this transaction's records; the last step before COMMIT. */
  async flush(): Promise<void> {
    this.adopt(this.chain.take());
    await this.chain.flush();
    if (this.chain.hasMoved) this.#writeHead.run(this.chain.head);
  }

  /** In a new transaction, after SQLite rolled back the former one. */
  undoLate(): void {
    this.chain.undoLate(this.#readHead.get());
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
