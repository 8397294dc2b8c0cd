/** The audit log of one node: its chain in the store, and its file. */
import type { AuditEvent } from '../../audit/event.ts';
import { type ChainedRecord, GENESIS_HASH } from '../../audit/record.ts';
import { AuditChain, type AuditHead } from '../audit-chain.ts';
import { countRecords } from '../statistics-store.ts';
import { deviceClaim, type DeviceClaim } from '../device-store.ts';
import { searchColumns, storable } from '../operations/audit.ts';
import type { Queries } from './queries.ts';

interface DeviceEvent extends DeviceClaim {
  readonly seq: number;
  readonly key: string | null;
}

/**
 * All calls except {@link close} require a transaction that begins with {@link lock}, which protects the chain from
 * another process with this node's name, and from the remains of a lost connection.
 */
export class AuditLog {
  readonly #chain: AuditChain;
  readonly #node: string;
  readonly #make;
  readonly #read;
  readonly #write;
  readonly #insert;
  readonly #noteDevices;
  readonly #count;
  /** Whether a write failed because of a full database disk, until a test finds room again. */
  wasFull = false;
  #devices: DeviceEvent[] = [];
  #told = 0;

  constructor(db: Queries, path: string, node: string) {
    this.#chain = new AuditChain(path, node);
    this.#node = node;
    this.#make = db.prepare<[string, string]>(
      `INSERT INTO audit_head (node, seq, hash, told, file_start, file_size) VALUES (?, 0, ?, 0, 1, 0)
       ON CONFLICT DO NOTHING`,
    );
    this.#read = db.prepare<[string], AuditHead & { told: number }>(
      'SELECT seq, hash, told, file_start, file_size FROM audit_head WHERE node = ? FOR UPDATE',
    );
    this.#write = db.prepare<[AuditHead & { node: string; told: number }]>(
      `UPDATE audit_head SET seq = @seq, hash = @hash, told = @told, file_start = @file_start, file_size = @file_size
       WHERE node = @node`,
    );
    this.#insert = db.prepare<object>(
      `INSERT INTO audit (node, seq, time, type, line, subject, ca, label, serial, request_id)
       SELECT @node, * FROM unnest(@seq::bigint[], @time::bigint[], @type::text[], @line::text[], @subject::text[],
         @ca::text[], @label::text[], @serial::text[], @request_id::text[]) AS record (seq) ORDER BY seq`,
    );
    this.#noteDevices = db.prepare<object>(
      `INSERT INTO device_event (device_key, position)
       WITH told AS (
         SELECT * FROM unnest(@seq::bigint[], @key::text[], @name::text[], @serial::text[], @ca::text[])
           AS told (seq, key, name, serial, ca)
       ), found AS (
         SELECT key, seq FROM told WHERE key IS NOT NULL
         UNION SELECT device.key, seq FROM told JOIN device ON device.id = told.name
           AND (device.ca IS NULL OR told.ca IS NULL OR device.ca = told.ca)
         UNION SELECT device.key, seq FROM told JOIN certificate USING (serial) JOIN device ON device.key = device_key
       )
       SELECT found.key, audit.position FROM found JOIN audit ON audit.node = @node AND audit.seq = found.seq`,
    );
    this.#count = db.prepare<object>(
      `INSERT INTO statistic AS known (node, hour, ca, what, count)
       SELECT @node, * FROM unnest(@hour::bigint[], @ca::text[], @what::text[], @count::bigint[])
       ON CONFLICT (hour, ca, what, node) DO UPDATE SET count = known.count + excluded.count`,
    );
  }

  /** Adds to the hourly counters. */
  #counted(records: readonly ChainedRecord[]): Promise<unknown>[] {
    const rows = countRecords(records);
    if (rows.length === 0) return [];
    return [
      this.#count.run({
        node: this.#node,
        hour: rows.map((row) => row.hour),
        ca: rows.map((row) => row.ca),
        what: rows.map((row) => row.what),
        count: rows.map((row) => row.count),
      }),
    ];
  }

  /** Creates the chain of a new node before the first transaction. */
  async make(): Promise<void> {
    await this.#make.run(this.#node, GENESIS_HASH);
  }

  /** Locks the chain for the transaction. */
  lock(): Promise<(AuditHead & { told: number }) | undefined> {
    return this.#read.get(this.#node);
  }

  /** {@link AuditChain.begin}. @throws EstuaryError 503 `AUDIT_TAMPERED` */
  begin(found: (AuditHead & { told: number }) | undefined, time: number): 'ready' | 'rotated' {
    this.#devices = [];
    const state = this.#chain.begin(found, time);
    // Records adopted from the file may concern any chain.
    this.#told = this.#chain.hasMoved ? this.#chain.head.seq : (found?.told ?? 0);
    return state;
  }

  /** Stores records that the file already has. The caller has checked them and sets the head. */
  async adopt(records: readonly ChainedRecord[]): Promise<void> {
    await Promise.all(this.#stored(records));
  }

  /** Sets the end of the chain after a replay. */
  async setHead(head: AuditHead): Promise<void> {
    await this.#write.run({ ...head, node: this.#node, told: head.seq });
  }

  /** Makes an event the next record of the transaction. @param device key of the device that it concerns */
  add(event: AuditEvent, time: number, device?: string | null): void {
    const { seq } = this.#chain.add(event, time);
    if (event.type !== 'audit.anchored') this.#told = seq;
    const claim = typeof device === 'string' ? NO_CLAIM : deviceClaim(event);
    if (claim !== undefined) this.#devices.push({ ...claim, seq, key: device ?? null });
  }

  /** Writes the records to the file and syncs it. */
  flush(): Promise<void> {
    return this.#chain.flush();
  }

  /** Sends the records and the head to the store; an error makes the following COMMIT fail. */
  send(): Promise<unknown> {
    const sent: Promise<unknown>[] = [];
    const node = this.#node;
    sent.push(...this.#stored(this.#chain.take()));
    if (this.#devices.length > 0)
      sent.push(
        this.#noteDevices.run({
          node,
          seq: this.#devices.map(({ seq }) => seq),
          key: this.#devices.map(({ key }) => key),
          name: this.#devices.map(({ name }) => storable(name)),
          serial: this.#devices.map(({ serial }) => serial),
          ca: this.#devices.map(({ ca }) => ca),
        }),
      );
    if (this.#chain.hasMoved) sent.push(this.#write.run({ ...this.#chain.head, node, told: this.#told }));
    return Promise.all(sent);
  }

  #stored(records: readonly ChainedRecord[]): Promise<unknown>[] {
    if (records.length === 0) return [];
    const rows = records.map(({ seq, time, type, line }) => ({ seq, time, type, line, ...searchColumns(line) }));
    return [
      ...this.#counted(records),
      this.#insert.run({
        node: this.#node,
        seq: rows.map((row) => row.seq),
        time: rows.map((row) => row.time),
        type: rows.map((row) => row.type),
        line: rows.map((row) => row.line),
        subject: rows.map((row) => row.subject),
        ca: rows.map((row) => row.ca),
        label: rows.map((row) => row.label),
        serial: rows.map((row) => row.serial),
        request_id: rows.map((row) => row.request_id),
      }),
    ];
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

  /** Removes the transaction's lines from the file, while the chain is still locked. */
  undo(): void {
    this.#chain.undo();
  }

  get path(): string {
    return this.#chain.path;
  }

  close(): void {
    this.#chain.close();
  }
}

const NO_CLAIM: DeviceClaim = { name: null, serial: null, ca: null };
