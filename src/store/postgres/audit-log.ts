/** The audit log of one node: its chain in the store, and its file. */
import type { AuditEvent } from '../../audit/event.ts';
import { type ChainedRecord, GENESIS_HASH } from '../../audit/record.ts';
import { AuditChain, type AuditHead } from '../audit-chain.ts';
import { countRecords } from '../statistics-store.ts';
import { claimedAt, DEVICE_ID, deviceClaim } from '../device-store.ts';
import { searchColumns } from '../audit-store.ts';
import { storable } from '../page.ts';
import type { Queries } from './queries.ts';

/** An event with its time and the key of the device that it concerns. */
export interface PlacedEvent {
  readonly event: AuditEvent;
  readonly time: number;
  readonly device?: string | null | undefined;
}

const INSERT = `INSERT INTO audit (node, seq, time, type, line, subject, ca, label, serial, request_id, device_key)
  SELECT @node, * FROM unnest(@seq::bigint[], @time::bigint[], @type::text[], @line::text[], @subject::text[],
    @ca::text[], @label::text[], @serial::text[], @request_id::text[], @device_key::text[]) AS record (seq) ORDER BY seq`;
const CLAIMED = `WITH claim AS (
    SELECT * FROM unnest(@name::text[], @serial::text[], @ca::text[]) WITH ORDINALITY AS claim (name, serial, ca, n)
  )
  SELECT n, min(key) AS key FROM (
    SELECT n, device.key FROM claim JOIN device ON ${DEVICE_ID} = claim.name
      AND ${claimedAt('claim.ca')}
    UNION SELECT n, device.key FROM claim JOIN certificate USING (serial) JOIN device ON device.key = device_key
  ) AS found GROUP BY n`;
const COUNT = `INSERT INTO statistic AS known (node, hour, ca, what, count)
  SELECT @node, * FROM unnest(@hour::bigint[], @ca::text[], @what::text[], @count::bigint[])
  ON CONFLICT (hour, ca, what, node) DO UPDATE SET count = known.count + excluded.count`;

/**
 * All calls except `chain.close` require a transaction that begins with {@link lock}, which protects the chain from
 * another process with this node's name, and from the remains of a lost connection.
 */
export class AuditLog {
  readonly chain: AuditChain;
  readonly #node: string;
  readonly #db: Queries;
  /** Whether a write failed because of a full database disk, until a test finds room again. */
  wasFull = false;
  #told = 0;

  constructor(db: Queries, path: string, node: string) {
    this.chain = new AuditChain(path, node);
    this.#node = node;
    this.#db = db;
  }

  /** Adds to the hourly counters. */
  #counted(records: readonly ChainedRecord[]): Promise<unknown>[] {
    const rows = countRecords(records);
    return rows.length === 0 ? [] : [this.#db.run(COUNT, { node: this.#node, ...columnsOf(rows) })];
  }

  /** Creates the chain of a new node before the first transaction. */
  async make(): Promise<void> {
    await this.#db.run`INSERT INTO audit_head (node, seq, hash, told, file_start, file_size)
      VALUES (${this.#node}, 0, ${GENESIS_HASH}, 0, 1, 0) ON CONFLICT DO NOTHING`;
  }

  /** Locks the chain for the transaction. */
  lock(): Promise<(AuditHead & { told: number }) | undefined> {
    return this.#db
      .get`SELECT seq, hash, told, file_start, file_size FROM audit_head WHERE node = ${this.#node} FOR UPDATE`;
  }

  /** {@link AuditChain.begin}. @throws EstuaryError 503 `AUDIT_TAMPERED` */
  begin(found: (AuditHead & { told: number }) | undefined, time: number): 'ready' | 'rotated' {
    const state = this.chain.begin(found, time);
    // Records adopted from the file may concern any chain.
    this.#told = this.chain.hasMoved ? this.chain.head.seq : (found?.told ?? 0);
    return state;
  }

  /** Stores records that the file already has. The caller has checked them and sets the head. */
  async adopt(records: readonly ChainedRecord[]): Promise<void> {
    await Promise.all(this.#stored(records));
  }

  /** Sets the end of the chain after a replay. */
  async setHead(head: AuditHead): Promise<void> {
    await this.#write(head, head.seq);
  }

  #write({ seq, hash, file_start, file_size }: AuditHead, told: number): Promise<number> {
    return this.#db.run`UPDATE audit_head SET seq = ${seq}, hash = ${hash}, told = ${told},
      file_start = ${file_start}, file_size = ${file_size} WHERE node = ${this.#node}`;
  }

  /** Makes events the next records of the transaction. */
  async add(events: readonly PlacedEvent[]): Promise<void> {
    const claims = events.flatMap(({ event, device }, at) => {
      const claim = typeof device === 'string' ? undefined : deviceClaim(event);
      return claim === undefined ? [] : [{ at, ...claim, name: storable(claim.name) }];
    });
    const claimed = new Map<number, string>();
    if (claims.length > 0) {
      const found = await this.#db.all<{ n: number; key: string }>(CLAIMED, columnsOf(claims));
      for (const { n, key } of found) claimed.set(claims[n - 1]?.at ?? -1, key);
    }
    for (const [at, { event, time, device }] of events.entries()) {
      const device_key = device ?? claimed.get(at);
      const { seq } = this.chain.add(device_key === undefined ? event : { ...event, device_key }, time);
      if (event.type !== 'audit.anchored') this.#told = seq;
    }
  }

  /** Sends the records and the head to the store; an error makes the following COMMIT fail. */
  send(): Promise<unknown> {
    const sent = this.#stored(this.chain.take());
    if (this.chain.hasMoved) sent.push(this.#write(this.chain.head, this.#told));
    return Promise.all(sent);
  }

  #stored(records: readonly ChainedRecord[]): Promise<unknown>[] {
    if (records.length === 0) return [];
    const rows = records.map(({ seq, time, type, line }) => ({ seq, time, type, line, ...searchColumns(line) }));
    return [...this.#counted(records), this.#db.run(INSERT, { node: this.#node, ...columnsOf(rows) })];
  }
}

/** Rows of the same form as a list parameter for each column. */
const columnsOf = (rows: readonly object[]): object =>
  Object.fromEntries(
    Object.keys(rows[0] ?? {}).map((name) => [name, rows.map((row): unknown => Reflect.get(row, name))]),
  );
