/**
 * Commits the calls of one server together: one transaction on one connection, one COMMIT and one fsync of the audit file for all.
 *
 * Within it, calls are under way side by side, so that their statements share round trips: whatever two calls could be in each other's way
 * with, they name as a key (keys.ts), and calls with a key in common come one after the other. The same keys are locked in the database
 * before the first statement, in one order for all servers, so that those of several servers neither come between each other's statements
 * nor wait for each other in a circle.
 */
import type { Call, Reply, Writer } from '../calls/calls.ts';
import { StoreLost, storeUnavailable, toStoreError } from '../calls/errors.ts';
import type { Outcome } from '../calls/outcome.ts';
import type { AuditLog } from './audit-log.ts';
import type { Connection } from './connection.ts';
import { isDiskFull, isInTheWay, isStatementError, toEstuaryError } from './errors.ts';
import { keysOf, locking } from './keys.ts';
import { Queries } from './queries.ts';

/** A write as it arrives: its arguments were typed where the call was made. */
export type WriteOperation = (...args: never[]) => Promise<Outcome<unknown>>;

/** How often a call that another transaction was in the way of is made. */
const ATTEMPTS = 5;
/** Milliseconds after a connection failed to come about until the next is tried; calls between fail at once. */
const PAUSE = 200;

/** What a call came to, before it is committed. */
type Result = { readonly outcome: Outcome<unknown> } | { readonly error: unknown };

/** Thrown where a transaction is given up as a whole: what stands in the way of each of its calls alone is found out by {@link GroupCommit}. */
class GivenUp extends Error {}

export class GroupCommit implements Writer {
  readonly #connect: () => Promise<Connection>;
  readonly #operations: ReadonlyMap<string, WriteOperation>;
  readonly #log: AuditLog;
  readonly #lockKeys;
  #connection: Connection | undefined;
  #refusal: { readonly error: Error; readonly until: number } | undefined;

  /** @param make makes the operations, and the audit log that they are recorded in, of statements that go to the connection at hand */
  constructor(
    connect: () => Promise<Connection>,
    make: (db: Queries) => { readonly operations: ReadonlyMap<string, WriteOperation>; readonly log: AuditLog },
  ) {
    this.#connect = connect;
    const db = new Queries((statement) => this.#at().query(statement));
    const { operations, log } = make(db);
    this.#operations = operations;
    this.#log = log;
    this.#lockKeys = locking(db);
  }

  /**
   * Carries the calls out. When it resolves, every call whose reply has a value is durable, and nothing of the others happened, unless the
   * reply says that it is not known.
   */
  async carryOut(calls: readonly Call[]): Promise<readonly Reply[]> {
    const time = calls[0]?.time ?? 0;
    const replies = new Map<Call, Reply>();
    let left = calls;
    for (let attempt = 1; left.length > 0; attempt++) {
      // First all at once; what then fails is told apart by a savepoint for each.
      const careful = attempt > 1;
      const results = await this.#attempt(left, careful, time);
      const again: Call[] = [];
      for (const [n, call] of left.entries()) {
        const result = results === undefined ? undefined : results[n];
        if (result === undefined) again.push(call);
        else if ('outcome' in result) replies.set(call, { value: result.outcome.value });
        else if (isInTheWay(result.error) && attempt < ATTEMPTS) again.push(call);
        else {
          if (isDiskFull(result.error)) this.#log.wasFull = true;
          replies.set(call, { error: toEstuaryError(result.error) });
        }
      }
      left = again;
    }
    return calls.map((call) => replies.get(call) ?? { error: storeUnavailable('no reply') });
  }

  get operations(): readonly string[] {
    return [...this.#operations.keys()];
  }

  /** For start-up: throws what stands in the way of writing. */
  async recover(time: number): Promise<void> {
    await this.#connected();
    await this.#log.make();
    try {
      await this.#attemptWith([], false, time);
    } catch (error) {
      throw toEstuaryError(error);
    }
  }

  close(): void {
    this.#connection?.end();
    this.#log.close();
  }

  /** undefined: each call has to be made again, by itself. */
  async #attempt(calls: readonly Call[], careful: boolean, time: number): Promise<readonly Result[] | undefined> {
    try {
      return await this.#attemptWith(calls, careful, time);
    } catch (error) {
      if (error instanceof GivenUp) return undefined;
      return calls.map(() => ({ error }));
    }
  }

  /** @throws what keeps all calls from happening; {@link GivenUp} where it may be one of them */
  async #attemptWith(calls: readonly Call[], careful: boolean, time: number): Promise<readonly Result[]> {
    const connection = await this.#connected();
    try {
      await this.#begin(connection, calls, time);
      const results = careful ? await this.#oneByOne(connection, calls) : await this.#together(calls);
      if (!careful && results.some((result) => 'error' in result)) {
        await this.#rollBack(connection);
        // Of a single one it is known already which it was.
        if (calls.length > 1) throw new GivenUp();
        return results;
      }
      await this.#commit(connection, calls, results);
      return results;
    } catch (error) {
      if (!(error instanceof GivenUp)) await this.#giveUp(connection, error);
      // A deadlock over the keys, say, or while the records are written.
      if (isInTheWay(error) && !careful) throw new GivenUp();
      throw error;
    }
  }

  async #begin(connection: Connection, calls: readonly Call[], time: number): Promise<void> {
    const keys = calls.flatMap((call) => keysOf(call) ?? []);
    for (;;) {
      const [, head] = await inPipeline([
        connection.script('BEGIN'),
        this.#log.lock(),
        ...(keys.length === 0 ? [] : [this.#lockKeys(keys)]),
      ] as const);
      if (this.#log.begin(head, time) === 'ready') return;
      await inPipeline([this.#log.send()]);
      await this.#committed(connection);
    }
  }

  /** Side by side, but for those with a key in common. */
  async #together(calls: readonly Call[]): Promise<readonly Result[]> {
    const last = new Map<string, Promise<unknown>>();
    const all: Promise<Result>[] = [];
    let barrier: Promise<unknown> = Promise.resolve();
    for (const call of calls) {
      const keys = keysOf(call);
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
    const operation = this.#operations.get(call.operation);
    try {
      if (operation === undefined) throw new Error(`no such operation: ${call.operation}`);
      return { outcome: await operation(...call.args) };
    } catch (error) {
      return { error };
    }
  }

  async #commit(connection: Connection, calls: readonly Call[], results: readonly Result[]): Promise<void> {
    for (const [n, call] of calls.entries()) {
      const result = results[n];
      if (result === undefined || 'error' in result) continue;
      const { events, device, ofDevices = [] } = result.outcome;
      for (const event of events) this.#log.add(event, call.time, device);
      for (const one of ofDevices) this.#log.add(one.event, call.time, one.device);
    }
    await this.#log.flush();
    const sent = this.#log.send();
    const committed = this.#committed(connection);
    // What keeps the records from the store keeps the transaction from being committed, and tells more.
    const [records] = await Promise.allSettled([sent, committed]);
    if (records.status === 'rejected' && isStatementError(records.reason)) throw records.reason;
    await committed;
    this.#log.committed();
  }

  /** @throws StoreLost where it is not known whether it is committed */
  async #committed(connection: Connection): Promise<void> {
    if ((await connection.commit()) === 'rolled back') throw storeUnavailable('the transaction was rolled back');
  }

  async #rollBack(connection: Connection): Promise<void> {
    this.#undo();
    await connection.script('ROLLBACK');
  }

  /** After an error: nothing of the transaction stays, as far as can be said. */
  async #giveUp(connection: Connection, error: unknown): Promise<void> {
    // The lock on the chain is gone, or what it came to is not known: the next transaction finds out what of these lines is in the store.
    if (connection.isBroken || error instanceof StoreLost) {
      connection.end();
      this.#log.settle();
      return;
    }
    try {
      await this.#rollBack(connection);
    } catch {
      connection.end();
      this.#log.settle();
    }
  }

  /** The file keeps what cannot be taken back; the next transaction adopts it. */
  #undo(): void {
    try {
      this.#log.undo();
    } catch {
      // The first error tells the reason.
    } finally {
      this.#log.settle();
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

/** Waits for all that was sent, and throws the first that went wrong. */
async function inPipeline<const Sent extends readonly Promise<unknown>[]>(
  sent: Sent,
): Promise<{ -readonly [N in keyof Sent]: Awaited<Sent[N]> }> {
  const settled = await Promise.allSettled(sent);
  const failure = settled.find((one) => one.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
  return Promise.all(sent);
}
