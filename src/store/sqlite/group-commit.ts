import type { AuditEvent } from '../../audit/event.ts';
import type { AuditLog } from './audit-log.ts';
import { type Call, type Reply, toPlainError } from '../calls/calls.ts';
import type { Db } from './database.ts';
import { toEstuaryError } from './errors.ts';
import type { Outcome } from '../calls/outcome.ts';
import { deviceClaim, type DeviceClaim } from '../device-store.ts';
import { writeLock } from './write-lock.ts';

/** A write as it arrives: its arguments were typed where the call was made. */
export type WriteOperation = (...args: never[]) => Outcome<unknown>;

/**
 * Commits calls together: one transaction, one fsync of the audit file and one of the database for all. One that fails takes nothing
 * but itself back: hardly any does, so they are carried out without savepoints first, for which SQLite copies each page that is
 * changed (docs/performance.md), and all over again, each in a savepoint of its own, where one has failed.
 */
export class GroupCommit {
  readonly #db: Db;
  readonly #log: AuditLog;
  readonly #operations: ReadonlyMap<string, WriteOperation>;
  readonly #begin;
  readonly #commit;
  readonly #rollback;
  readonly #savepoint;
  readonly #release;
  readonly #rollbackTo;
  readonly #noteDevice;
  readonly #noteClaim;

  constructor(db: Db, log: AuditLog, operations: ReadonlyMap<string, WriteOperation>) {
    this.#db = db;
    this.#log = log;
    this.#operations = operations;
    // The write lock from the start, also against other processes: the audit chain needs it.
    this.#begin = writeLock(db);
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#savepoint = db.prepare('SAVEPOINT one_call');
    this.#release = db.prepare('RELEASE one_call');
    this.#rollbackTo = db.prepare('ROLLBACK TO one_call');
    this.#noteDevice = db.prepare<[string, number]>('INSERT INTO device_event (device_key, seq) VALUES (?, ?)');
    this.#noteClaim = db.prepare<DeviceClaim & { seq: number }>(
      `INSERT INTO device_event (device_key, seq)
       SELECT key, @seq FROM device WHERE id = @name AND (ca IS NULL OR @ca IS NULL OR ca = @ca)
       UNION SELECT device.key, @seq FROM certificate JOIN device ON device.key = device_key WHERE serial = @serial`,
    );
  }

  /**
   * Carries the calls out. When it returns, every call whose reply has a value is durable, and nothing of the others
   * happened.
   *
   * @param time for the audit records about what a crash or a rotation left, ms
   */
  run(calls: readonly Call[], time: number): readonly Reply[] {
    try {
      this.#beginWithLog(time);
      const replies = this.#together(calls) ?? this.#apart(calls, time);
      this.#finish();
      return replies;
    } catch (error) {
      const reason = toPlainError(toEstuaryError(error));
      this.#undo();
      return calls.map((call) => ({ id: call.id, error: reason }));
    }
  }

  /** {@link run} without calls, for start-up: throws what stands in the way of writing. */
  recover(time: number): void {
    try {
      this.#beginWithLog(time);
      this.#finish();
    } catch (error) {
      this.#undo();
      throw error;
    }
  }

  #beginWithLog(time: number): void {
    this.#beginTransaction(time);
    if (!this.#log.hasMoved) return;
    // What it has found in the file is told once, so it is not taken back with a call.
    this.#finish();
    this.#beginTransaction(time);
  }

  #beginTransaction(time: number): void {
    this.#begin();
    while (this.#log.begin(time) === 'rotated') {
      this.#commit.run();
      this.#begin();
    }
  }

  #finish(): void {
    this.#log.flush();
    this.#commit.run();
    this.#log.settle();
  }

  /** @returns undefined when one of them has failed, and the transaction is to be begun again */
  #together(calls: readonly Call[]): readonly Reply[] | undefined {
    try {
      return calls.map((call) => {
        const operation = this.#operations.get(call.operation);
        return operation === undefined ? unknownOperation(call) : this.#recorded(call, operation(...call.args));
      });
    } catch {
      return undefined;
    }
  }

  #apart(calls: readonly Call[], time: number): readonly Reply[] {
    this.#undo();
    this.#beginWithLog(time);
    return calls.map((call) => this.#carryOut(call));
  }

  #carryOut(call: Call): Reply {
    const operation = this.#operations.get(call.operation);
    if (operation === undefined) return unknownOperation(call);
    let outcome: Outcome<unknown>;
    this.#savepoint.run();
    try {
      outcome = operation(...call.args);
    } catch (error) {
      // Some errors make SQLite roll the whole transaction back; then no call of it can succeed.
      if (!this.#db.inTransaction) throw error;
      this.#rollbackTo.run();
      this.#release.run();
      return { id: call.id, error: toPlainError(toEstuaryError(error)) };
    }
    this.#release.run();
    // Outside the savepoint: when an audit record cannot be written, everything fails.
    return this.#recorded(call, outcome);
  }

  #recorded(call: Call, { value, events, device, ofDevices }: Outcome<unknown>): Reply {
    for (const event of events) this.#record(event, call.time, device ?? undefined);
    for (const one of ofDevices ?? []) this.#record(one.event, call.time, one.device);
    return { id: call.id, value };
  }

  #record(event: AuditEvent, time: number, device: string | undefined): void {
    const seq = this.#log.add(event, time);
    if (device !== undefined) return void this.#noteDevice.run(device, seq);
    const claim = deviceClaim(event);
    if (claim !== undefined) this.#noteClaim.run({ ...claim, seq });
  }

  #undo(): void {
    try {
      if (this.#db.inTransaction) this.#log.undo();
      else if (this.#log.hasWritten) {
        this.#begin();
        this.#log.undoLate();
      }
    } catch {
      // The file keeps lines ahead of the store; the next transaction adopts them. The first error tells the reason.
    } finally {
      this.#log.settle();
    }
    if (this.#db.inTransaction) this.#rollback.run();
  }
}

const unknownOperation = ({ id, operation }: Call): Reply => ({
  id,
  error: toPlainError(toEstuaryError(new Error(`no such operation: ${operation}`))),
});
