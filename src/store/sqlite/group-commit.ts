import Database from 'better-sqlite3';
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { AuditEvent } from '../../audit/event.ts';
import { describe } from '../../errors.ts';
import type { Events, Outcome } from '../calls/calls.ts';
import { StoreLost, storeUnavailable } from '../calls/errors.ts';
import type { Call, Reply, Writer } from '../calls/write-queue.ts';
import { runAtOnce } from '../port.ts';
import type { AuditLog } from './audit-log.ts';
import { type Db, toEstuaryError } from './database.ts';
import type { StoreFiles } from './store-files.ts';
import { claimedAt, DEVICE_ID, deviceClaim, type DeviceClaim } from '../device-store.ts';

const force = promisify(fdatasync);

/** Milliseconds to wait for another process's transaction, and between two attempts. */
const [LOCK_TIMEOUT, LOCK_PAUSE] = [5000, 1];
/** Transactions per checkpoint of the write-ahead log: some 10 MiB, so that pages written often are copied rarely. */
const CHECKPOINT = 64;
/** Milliseconds between attempts to recover from a failed write to disk. */
const RECOVERY_PAUSE = 1000;

/**
 * Commits calls together: one transaction, one fsync of the audit file and one of the database for all.
 *
 * It runs in the main thread, which does not wait for the disk. The statements only write to the page cache, and another thread of the
 * process (libuv's) forces the audit file to disk before the COMMIT, and the write-ahead log after it. No reply leaves before that, and
 * {@link durable} keeps what others have read until then.
 *
 * A call that fails takes only its changes back. Hardly any call fails, so they are carried out without savepoints first, for which SQLite
 * copies each page that is changed (docs/internals/decisions.md), and again with a savepoint each if one has failed.
 */
export class GroupCommit implements Writer {
  /** Copies the write-ahead log into the database while no transaction is open. */
  checkpoint: () => Promise<unknown> = () => Promise.resolve();
  readonly db: Db;
  /** Checked before each reply, once the store is open. */
  files: StoreFiles | undefined;
  readonly #log: AuditLog;
  readonly #onCommit: ((events: Events) => void) | undefined;
  readonly #lock;
  readonly #commit;
  readonly #rollback;
  readonly #savepoint;
  readonly #release;
  readonly #rollbackTo;
  readonly #claimed;
  /** File descriptor of the write-ahead log. */
  #wal: number | undefined;
  /** Pending while a committed transaction may not be on disk. */
  #forced: Promise<void> | undefined;
  /** Why commits may be missing on disk, until a checkpoint has copied all of them. */
  #unforced: StoreLost | undefined;
  #nextRecovery = 0;
  /** Transactions since the last checkpoint. */
  #commits = 0;
  #isCheckpointing = false;
  #checkpointError: unknown;

  /** @param onCommit receives the events of each commit that is on disk */
  constructor(db: Db, log: AuditLog, onCommit?: (events: Events) => void) {
    this.db = db;
    this.#log = log;
    this.#onCommit = onCommit;
    // COMMIT does not wait for the disk; #finish does. SQLite still syncs what a checkpoint depends on.
    db.pragma('synchronous = NORMAL');
    db.pragma('wal_autocheckpoint = 0');
    db.pragma('busy_timeout = 0');
    // The write lock from the start, also against other processes: the audit chain needs it.
    this.#lock = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#savepoint = db.prepare('SAVEPOINT one_call');
    this.#release = db.prepare('RELEASE one_call');
    this.#rollbackTo = db.prepare('ROLLBACK TO one_call');
    this.#claimed = db
      .prepare<DeviceClaim, string>(
        `SELECT min(key) FROM (
           SELECT key FROM device WHERE ${DEVICE_ID} = @name AND ${claimedAt('@ca')}
           UNION SELECT device.key FROM certificate JOIN device ON device.key = device_key WHERE serial = @serial)`,
      )
      .pluck();
  }

  /** Runs the calls. On return, every call with a value in its reply is durable, and the others had no effect. */
  async carryOut(calls: readonly Call[]): Promise<readonly Reply[]> {
    const time = calls[0]?.time ?? 0;
    try {
      this.#refuseUnforced();
      this.files?.check();
      await this.#beginWithLog(time);
      const replies = this.#together(calls) ?? (await this.#apart(calls, time));
      await this.#finish();
      this.files?.check();
      return replies;
    } catch (error) {
      const reason = toEstuaryError(error);
      await this.#undo();
      return calls.map(() => ({ error: reason }));
    }
  }

  /** {@link carryOut} without calls, for the start: throws the error that prevents writing. */
  async recover(time: number): Promise<void> {
    try {
      await this.#beginWithLog(time);
      await this.#finish();
    } catch (error) {
      await this.#undo();
      throw error;
    }
  }

  /** The result of a read, once it is on disk. @throws StoreLost if it may not be */
  async durable<T>(read: () => T | Promise<T>): Promise<T> {
    this.#refuseUnforced();
    try {
      const value = await read();
      await this.#forced;
      if (this.#unforced !== undefined) throw this.#unforced;
      this.files?.checkForRead();
      return value;
    } catch (error) {
      // The reason of SQLite's error.
      this.files?.check();
      throw error;
    }
  }

  /** Whether a commit that a read finds is on its way to the disk: then only {@link durable} may return its result. */
  get isForcing(): boolean {
    return this.#forced !== undefined;
  }

  /** {@link durable} while no commit is being forced. */
  durableAtOnce<T>(read: () => T): T {
    this.#refuseUnforced();
    try {
      const value = read();
      this.files?.checkForRead();
      return value;
    } catch (error) {
      this.files?.check();
      throw error;
    }
  }

  /** @throws EstuaryError 503 if the last checkpoint failed: the write-ahead log grows until one succeeds */
  refuseFailedCheckpoint(): void {
    if (this.#checkpointError === undefined) return;
    throw storeUnavailable(`the checkpoint of the database failed: ${describe(this.#checkpointError)}`);
  }

  close(): void {
    this.#log.chain.close();
    this.db.close();
    if (this.#wal !== undefined) closeSync(this.#wal);
  }

  async #beginWithLog(time: number): Promise<void> {
    await this.#beginTransaction(time);
    if (!this.#log.chain.hasMoved) return;
    // Findings in the file are recorded once, so they are not rolled back with a call.
    await this.#finish();
    await this.#beginTransaction(time);
  }

  async #beginTransaction(time: number): Promise<void> {
    await this.#begin();
    while (this.#log.begin(time) === 'rotated') {
      this.#commit.run();
      await this.#force();
      await this.#begin();
    }
  }

  /** @throws SqliteError `SQLITE_BUSY` if another process keeps the write lock */
  async #begin(): Promise<void> {
    for (const deadline = performance.now() + LOCK_TIMEOUT; ;) {
      try {
        // A failed ROLLBACK leaves its transaction open.
        if (this.db.inTransaction) this.#rollback.run();
        this.#lock.run();
        return;
      } catch (error) {
        const busy = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
        if (!busy || performance.now() > deadline) throw error;
        await delay(LOCK_PAUSE);
      }
    }
  }

  async #finish(): Promise<void> {
    await this.#log.flush();
    this.#commit.run();
    this.#log.chain.committed();
    await this.#force();
    this.#onCommit?.(this.#log.chain.reported());
    this.#commits++;
    if (this.#commits >= CHECKPOINT && !this.#isCheckpointing) void this.#checkpoint();
  }

  /** After a failure, the next transaction tries again. */
  async #checkpoint(): Promise<void> {
    this.#isCheckpointing = true;
    try {
      await this.checkpoint();
      this.#commits = 0;
      this.#checkpointError = undefined;
    } catch (error) {
      this.#checkpointError = error;
    } finally {
      this.#isCheckpointing = false;
    }
  }

  /** Syncs committed data. @throws StoreLost if it may not be on disk */
  async #force(): Promise<void> {
    try {
      const forced = force(this.#openWal());
      this.#forced = forced.catch(() => undefined);
      await forced;
    } catch (error) {
      this.#unforced = new StoreLost(`the write-ahead log was not forced to disk: ${describe(error)}`);
      throw this.#unforced;
    } finally {
      this.#forced = undefined;
    }
  }

  #openWal(): number {
    return (this.#wal ??= openSync(`${this.db.name}-wal`, 'r'));
  }

  /**
   * After a failed write to disk, the kernel may have dropped pages of the write-ahead log, and a later success does
   * not cover them. So nothing is written or read before a checkpoint has copied the log into the database and emptied
   * it on disk.
   */
  #refuseUnforced(): void {
    if (this.#unforced === undefined) return;
    if (performance.now() < this.#nextRecovery) throw this.#unforced;
    this.#nextRecovery = performance.now() + RECOVERY_PAUSE;
    try {
      // 1: a reader keeps the log.
      if (this.db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 0) throw new Error('the log is in use');
      fdatasyncSync(this.#openWal());
      this.#unforced = undefined;
    } catch (error) {
      this.#unforced = new StoreLost(`a write to disk failed, and so did the checkpoint after it: ${describe(error)}`);
      throw this.#unforced;
    }
  }

  /** @returns undefined if a call failed and the transaction must be restarted */
  #together(calls: readonly Call[]): readonly Reply[] | undefined {
    try {
      return calls.map((call) => this.#recorded(call, runAtOnce(call.operation.run(...call.args))));
    } catch {
      return undefined;
    }
  }

  async #apart(calls: readonly Call[], time: number): Promise<readonly Reply[]> {
    await this.#undo();
    await this.#beginWithLog(time);
    return calls.map((call) => this.#carryOut(call));
  }

  #carryOut(call: Call): Reply {
    let outcome: Outcome<unknown>;
    this.#savepoint.run();
    try {
      outcome = runAtOnce(call.operation.run(...call.args));
    } catch (error) {
      // Some errors make SQLite roll back the whole transaction; then every call fails.
      if (!this.db.inTransaction) throw error;
      this.#rollbackTo.run();
      this.#release.run();
      return { error: toEstuaryError(error) };
    }
    this.#release.run();
    // Outside the savepoint: if an audit record cannot be written, everything fails.
    return this.#recorded(call, outcome);
  }

  #recorded(call: Call, { value, events, device, ofDevices }: Outcome<unknown>): Reply {
    for (const event of events) this.#record(event, call.time, device ?? undefined);
    for (const { event, device } of ofDevices ?? []) this.#record(event, call.time, device);
    return { value };
  }

  #record(event: AuditEvent, time: number, device: string | undefined): void {
    const claim = device === undefined ? deviceClaim(event) : undefined;
    const device_key = device ?? (claim && this.#claimed.get(claim)) ?? undefined;
    this.#log.chain.add(device_key === undefined ? event : { ...event, device_key }, time);
  }

  /** Never throws: the caller reports the first error. */
  async #undo(): Promise<void> {
    try {
      if (this.db.inTransaction) this.#log.chain.undo();
      else if (this.#log.chain.hasWritten) {
        await this.#begin();
        this.#log.undoLate();
      }
    } catch {
      // The file keeps lines ahead of the store; the next transaction adopts them.
    } finally {
      this.#log.chain.settle();
    }
    try {
      if (this.db.inTransaction) this.#rollback.run();
    } catch {
      // The next transaction tries again.
    }
  }
}
