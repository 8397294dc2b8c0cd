/**
 * Commits the calls of one node together: one transaction on one connection, with one COMMIT and one fsync of the audit
 * file.
 *
 * Its calls run concurrently, so that their statements share round trips. Each call names what it could conflict on as
 * keys (keys.ts), and calls with a common key run one after another. The same keys are locked in the database before
 * the first statement, in one order on all nodes, so that calls of several nodes neither interleave nor deadlock.
 */
import type { Events, Outcome } from '../calls/calls.ts';
import { StoreLost, storeUnavailable, toStoreError } from '../calls/errors.ts';
import type { Call, Reply, Writer } from '../calls/write-queue.ts';
import { run } from '../port.ts';
import type { AuditLog, PlacedEvent } from './audit-log.ts';
import type { Connection } from './connection.ts';
import { isDiskFull, isInTheWay, isStatementError, toEstuaryError } from './errors.ts';
import { keysOfCall, lock } from './keys.ts';
import { Queries } from './queries.ts';

/** Attempts of a call that conflicts with another transaction. */
const ATTEMPTS = 5;
/** Milliseconds after a failed connection until the next attempt; calls in between fail at once. */
const PAUSE = 200;

/** A call's result before the commit. */
type Result = { readonly outcome: Outcome<unknown> } | { readonly error: unknown };

/** Aborts a transaction as a whole; {@link GroupCommit} then finds the calls at fault. */
class GivenUp extends Error {}

export class GroupCommit implements Writer {
  readonly #connect: () => Promise<Connection>;
  readonly #onCommit: ((events: Events) => void) | undefined;
  readonly log: AuditLog;
  /** Statements on the current connection. */
  readonly db = new Queries({ query: (statement) => this.#at().query(statement) });
  #connection: Connection | undefined;
  #refusal: { readonly error: Error; readonly until: number } | undefined;

  /** @param onCommit receives the events of each commit */
  constructor(
    connect: () => Promise<Connection>,
    makeLog: (db: Queries) => AuditLog,
    onCommit?: (events: Events) => void,
  ) {
    this.#connect = connect;
    this.log = makeLog(this.db);
    this.#onCommit = onCommit;
  }

  /**
   * Runs the calls. On return, every call with a value in its reply is durable, and the others had no effect unless the
   * reply says that it is unknown.
   */
  async carryOut(calls: readonly Call[]): Promise<readonly Reply[]> {
    const time = calls[0]?.time ?? 0;
    const replies = new Map<Call, Reply>();
    let left = calls;
    for (let attempt = 1; left.length > 0; attempt++) {
      // All at once first; after a failure, with a savepoint for each.
      const careful = attempt > 1;
      const results = await this.#attempt(left, careful, time);
      const again: Call[] = [];
      for (const [n, call] of left.entries()) {
        const result = results === undefined ? undefined : results[n];
        if (result === undefined) again.push(call);
        else if ('outcome' in result) replies.set(call, { value: result.outcome.value });
        else if (isInTheWay(result.error) && attempt < ATTEMPTS) again.push(call);
        else {
          if (isDiskFull(result.error)) this.log.wasFull = true;
          replies.set(call, { error: toEstuaryError(result.error) });
        }
      }
      left = again;
    }
    return calls.map((call) => replies.get(call) ?? { error: storeUnavailable('no reply') });
  }

  /** For start: throws the error that prevents writing. */
  async recover(time: number): Promise<void> {
    await this.#connected();
    await this.log.make();
    try {
      await this.#attemptWith([], false, time);
    } catch (error) {
      throw toEstuaryError(error);
    }
  }

  close(): void {
    this.#connection?.end();
    this.log.chain.close();
  }

  /** undefined: each call must be retried individually. */
  async #attempt(calls: readonly Call[], careful: boolean, time: number): Promise<readonly Result[] | undefined> {
    try {
      return await this.#attemptWith(calls, careful, time);
    } catch (error) {
      if (error instanceof GivenUp) return undefined;
      if (calls.length === 1 || !isOfOneCall(error)) return calls.map(() => ({ error }));
      // The audit records of one call were rejected, and nobody knows of which.
      const results: Result[] = [];
      for (const call of calls) results.push(...((await this.#attempt([call], careful, time)) ?? []));
      return results;
    }
  }

  /** @throws the error that fails all calls; {@link GivenUp} if one of them may be at fault */
  async #attemptWith(calls: readonly Call[], careful: boolean, time: number): Promise<readonly Result[]> {
    const connection = await this.#connected();
    try {
      await this.#begin(connection, calls, time);
      const results = careful ? await this.#oneByOne(connection, calls) : await this.#together(calls);
      if (!careful && results.some((result) => 'error' in result)) {
        await this.#rollBack(connection);
        // A single call is known to be at fault.
        if (calls.length > 1) throw new GivenUp();
        return results;
      }
      await this.#commit(connection, calls, results);
      return results;
    } catch (error) {
      if (!(error instanceof GivenUp)) await this.#giveUp(connection, error);
      // Such as a deadlock on the keys or while writing the records.
      if (!careful && (isInTheWay(error) || (calls.length > 1 && isOfOneCall(error)))) throw new GivenUp();
      throw error;
    }
  }

  async #begin(connection: Connection, calls: readonly Call[], time: number): Promise<void> {
    const keys = calls.flatMap((call) => keysOfCall(call) ?? []);
    for (;;) {
      const [, head] = await inPipeline([
        connection.script('BEGIN'),
        this.log.lock(),
        ...(keys.length === 0 ? [] : [lock(this.db, keys)]),
      ] as const);
      if (this.log.begin(head, time) === 'ready') return;
      await inPipeline([this.log.send()]);
      await this.#committed(connection);
    }
  }

  /** Concurrently, except for calls with a common key. */
  async #together(calls: readonly Call[]): Promise<readonly Result[]> {
    const last = new Map<string, Promise<unknown>>();
    const all: Promise<Result>[] = [];
    let barrier: Promise<unknown> = Promise.resolve();
    for (const call of calls) {
      const keys = keysOfCall(call);
      const before = keys === undefined ? [...all] : [barrier, ...keys.flatMap((key) => last.get(key) ?? [])];
      const result = Promise.all(before).then(() => this.#carryOut(call));
      all.push(result);
      if (keys === undefined) barrier = result;
      else for (const key of keys) last.set(key, result);
    }
    return Promise.all(all);
  }

  async #oneByOne(connection: Connection, calls: readonly Call[]): Promise<readonly Result[]> {
    const results: Result[] = [];
    for (const call of calls) {
      const [, result] = await inPipeline([connection.script('SAVEPOINT one_call'), this.#carryOut(call)] as const);
      await connection.script('error' in result ? 'ROLLBACK TO one_call; RELEASE one_call' : 'RELEASE one_call');
      results.push(result);
    }
    return results;
  }

  async #carryOut(call: Call): Promise<Result> {
    try {
      return { outcome: await run(call.operation.run(...call.args)) };
    } catch (error) {
      return { error };
    }
  }

  async #commit(connection: Connection, calls: readonly Call[], results: readonly Result[]): Promise<void> {
    const events = calls.flatMap(({ time }, n): PlacedEvent[] => {
      const result = results[n];
      if (result === undefined || 'error' in result) return [];
      const { events, device, ofDevices = [] } = result.outcome;
      return [...events.map((event) => ({ event, time, device })), ...ofDevices.map((placed) => ({ ...placed, time }))];
    });
    await this.log.add(events);
    await this.log.chain.flush();
    const sent = this.log.send();
    const committed = this.#committed(connection);
    // An error of the records also prevents the commit, and is more specific.
    const [records] = await Promise.allSettled([sent, committed]);
    if (records.status === 'rejected' && isStatementError(records.reason)) throw records.reason;
    await committed;
    this.log.chain.committed();
    this.#onCommit?.(this.log.chain.reported());
  }

  /** @throws StoreLost if the result of the commit is unknown */
  async #committed(connection: Connection): Promise<void> {
    if ((await connection.commit()) === 'rolled back') throw storeUnavailable('the transaction was rolled back');
  }

  async #rollBack(connection: Connection): Promise<void> {
    this.#undo();
    await connection.script('ROLLBACK');
  }

  /** Rolls back after an error as far as possible. */
  async #giveUp(connection: Connection, error: unknown): Promise<void> {
    // Without the lock on the chain, or with an unknown result, the next transaction finds out which of these lines are
    // in the store.
    if (connection.isBroken || error instanceof StoreLost) {
      connection.end();
      this.log.chain.settle();
      return;
    }
    try {
      await this.#rollBack(connection);
    } catch {
      connection.end();
      this.log.chain.settle();
    }
  }

  /** The file keeps lines that cannot be removed; the next transaction adopts them. */
  #undo(): void {
    try {
      this.log.chain.undo();
    } catch {
      // The first error is the reason.
    } finally {
      this.log.chain.settle();
    }
  }

  #at(): Connection {
    if (this.#connection === undefined) throw storeUnavailable('not connected');
    return this.#connection;
  }

  async #connected(): Promise<Connection> {
    if (this.#connection?.isBroken === false) return this.#connection;
    this.#connection = undefined;
    if (this.#refusal !== undefined && performance.now() < this.#refusal.until) throw this.#refusal.error;
    try {
      this.#connection = await this.#connect();
      this.#refusal = undefined;
      return this.#connection;
    } catch (error) {
      this.#refusal = { error: toStoreError(error), until: performance.now() + PAUSE };
      throw error;
    }
  }
}

/** Whether a single call may have caused the error of a transaction. */
const isOfOneCall = (error: unknown): boolean => isStatementError(error) && !isInTheWay(error) && !isDiskFull(error);

/** Waits for all statements, and throws the first error. */
async function inPipeline<const Sent extends readonly Promise<unknown>[]>(
  sent: Sent,
): Promise<{ -readonly [N in keyof Sent]: Awaited<Sent[N]> }> {
  const settled = await Promise.allSettled(sent);
  const failure = settled.find((result) => result.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
  return Promise.all(sent);
}
