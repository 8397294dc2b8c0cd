/**
 * A node's lease: it sends a heartbeat every few seconds, by the database's clock, under its name. The other nodes
 * consider a silent node dead and close what it left open. A node that was merely suspended cannot do harm then: its
 * pending work is closed, and it continues as a new incarnation.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { describe, failed } from '../../../errors.ts';
import { CLOCK_TOLERANCE } from '../../store.ts';

export type NodeLog = Readonly<Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>>;

export interface NodeLeaseOptions {
  /** A dedicated connection, not from a pool that may take it away. */
  readonly connect: () => Promise<Client>;
  readonly name: string;
  /** The process: what it leaves open is closed only once the node is dead. */
  readonly instance: string;
  readonly log: NodeLog;
  /** Closes what instances of dead nodes left open. Every node that finds some calls it; idempotent. */
  readonly closeLeftOpen: (instance: string) => Promise<void>;
  /** Milliseconds, for tests. */
  readonly beat?: number;
  readonly lease?: number;
}

/** Milliseconds between heartbeats. */
const BEAT = 5000;
/** Milliseconds without a heartbeat until a node is dead. */
export const LEASE = 20_000;
/** Class of the advisory locks on node names. */
const NAMES = 0x6573_7401;

/** Result of a heartbeat, with the database's time. */
interface Beat {
  readonly time: number;
}
const TIME = '(extract(epoch FROM node.heartbeat) * 1000)::double precision AS time';

interface Standing {
  readonly incarnation: string;
  /** Seconds since its last heartbeat. */
  readonly age: number;
  readonly host: string;
}

/** Milliseconds after which a response is too slow to set the clock. */
const SLOW = 1000;

/**
 * The database's time on a node, so that all nodes compare times by one clock. Between two responses it follows the
 * process's monotonic clock, so changes of the machine's clock have no effect.
 */
class DatabaseClock {
  /** The database's time minus the monotonic time. */
  #offset: number | undefined;

  /**
   * Sets the clock from a response.
   * @param time the database's time while it responded
   * @param sent when it was sent, by `performance.now()`
   */
  set(time: number, sent: number): void {
    const received = performance.now();
    if (this.#offset !== undefined && received - sent > SLOW) return;
    this.#offset = time - (sent + received) / 2;
  }

  readonly now = (): number => (this.#offset === undefined ? Date.now() : Math.round(performance.now() + this.#offset));

  /** Milliseconds that this machine's clock is ahead of the database's. */
  readonly skew = (): number => Date.now() - this.now();
}

export class NodeLease {
  readonly #options: NodeLeaseOptions;
  readonly #beat: number;
  readonly #lease: number;
  readonly #stopped = new AbortController();
  /** Set by each heartbeat. */
  readonly clock = new DatabaseClock();
  #isClockOff = false;
  #incarnation: string = randomUUID();
  #client: Client | undefined;
  /** By the monotonic clock: when others may consider this node dead. */
  #heldUntil = 0;
  #dutyUntil = 0;
  #failing = false;
  #running: Promise<void> | undefined;

  private constructor(options: NodeLeaseOptions) {
    this.#options = options;
    this.#beat = options.beat ?? BEAT;
    this.#lease = options.lease ?? LEASE;
  }

  /**
   * Takes the name and keeps it.
   * @throws EstuaryError 500 `NODE_NAME_IN_USE` if a node with this name is alive; errors of the database client
   */
  static async join(options: NodeLeaseOptions): Promise<NodeLease> {
    const lease = new NodeLease(options);
    try {
      await lease.#join();
    } catch (error) {
      await lease.#disconnect();
      throw error;
    }
    lease.#watchClock();
    lease.#running = lease.#run();
    return lease;
  }

  /** Whether the other nodes certainly consider this node alive. Otherwise its work comes to nothing. */
  get held(): boolean {
    return performance.now() < this.#heldUntil;
  }

  /** Whether this node performs the tasks of a single node. */
  get onDuty(): boolean {
    return this.held && performance.now() < this.#dutyUntil;
  }

  /** Releases the name and the duty. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    try {
      const client = await this.#connected();
      await client.query('DELETE FROM duty WHERE incarnation = $1', [this.#incarnation]);
      await client.query('DELETE FROM node WHERE name = $1 AND incarnation = $2', [
        this.#options.name,
        this.#incarnation,
      ]);
    } catch (error) {
      this.#options.log.warn({ detail: describe(error) }, 'the name of this node stays in use until its lease expires');
    }
    this.#heldUntil = 0;
    await this.#disconnect();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const { log } = this.#options;
    while (!signal.aborted) {
      await sleep(this.#beat, undefined, { signal }).catch(() => undefined);
      if (isAborted(signal)) return;
      try {
        await this.#once();
        this.#watchClock();
        if (this.#failing) log.info({ node: this.#options.name }, 'this node has its lease again');
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) log.error({ detail: describe(error) }, 'cannot renew the lease of this node');
        this.#failing = true;
        await this.#disconnect();
      }
    }
  }

  async #once(): Promise<void> {
    const { name, log } = this.#options;
    const client = await this.#connected();
    const sent = performance.now();
    const { rows } = await client.query<Beat>(
      `UPDATE node SET heartbeat = clock_timestamp()
       WHERE name = $1 AND incarnation = $2 AND heartbeat > clock_timestamp() - $3::bigint * interval '1 millisecond'
       RETURNING ${TIME}`,
      [name, this.#incarnation, this.#lease],
    );
    const [beat] = rows;
    if (beat !== undefined) this.#lives(beat, sent);
    else {
      this.#heldUntil = 0;
      log.warn({ node: name }, 'other nodes considered this node dead; it continues as a new incarnation');
      await this.#join();
    }
    await this.#takeDuty(client);
    await this.#closeDead(client);
  }

  /** Waits until it is certain whether the previous node with this name is alive. */
  async #join(): Promise<void> {
    const { name, log } = this.#options;
    let first: number | undefined;
    for (;;) {
      const client = await this.#connected();
      const isFree = await this.#lockName(client);
      const before = await standing(client, name);
      if (before === undefined || isFree || before.age * 1000 > this.#lease) {
        if (await this.#take(client, before)) return;
        continue;
      }
      // It is connected: it is alive if it sends another heartbeat.
      if (first !== undefined && before.age < first)
        throw failed(
          'NODE_NAME_IN_USE',
          `A node named "${name}" runs on ${before.host}. Give this node a different store.node_name.`,
        );
      if (first === undefined)
        log.info({ node: name }, 'a node of this name was active recently; waiting for its lease to expire');
      first = before.age;
      await sleep(Math.min(500, this.#beat / 4));
    }
  }

  async #lockName(client: Client): Promise<boolean> {
    const { rows } = await client.query<{ locked: boolean }>(
      'SELECT pg_try_advisory_lock($1, hashtext($2)) AS locked',
      [NAMES, this.#options.name],
    );
    return rows[0]?.locked === true;
  }

  /** `false`: another process was faster. */
  async #take(client: Client, before: Standing | undefined): Promise<boolean> {
    const incarnation = randomUUID();
    const sent = performance.now();
    const { rows } = await client.query<Beat>(
      `INSERT INTO node (name, incarnation, host, instance, started, heartbeat)
       VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
       ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, host = excluded.host,
         instance = excluded.instance, started = excluded.started, heartbeat = excluded.heartbeat
       WHERE node.incarnation = $5
       RETURNING ${TIME}`,
      [this.#options.name, incarnation, hostname(), this.#options.instance, before?.incarnation ?? null],
    );
    const [beat] = rows;
    if (beat === undefined) return false;
    this.#incarnation = incarnation;
    this.#dutyUntil = 0;
    this.#lives(beat, sent);
    await this.#takeDuty(client);
    return true;
  }

  #lives({ time }: Beat, sent: number): void {
    this.clock.set(time, sent);
    this.#heldUntil = sent + this.#lease;
  }

  #watchClock(): void {
    const { log, name } = this.#options;
    const skew = this.clock.skew();
    const isOff = Math.abs(skew) > CLOCK_TOLERANCE.warning;
    const fields = { node: name, skew_seconds: Math.round(skew / 1000) };
    if (isOff && !this.#isClockOff)
      log.warn(fields, 'the clocks of this node and the database differ. Synchronize both, for example with NTP.');
    if (!isOff && this.#isClockOff) log.info(fields, 'the clocks of this node and the database agree again');
    this.#isClockOff = isOff;
  }

  async #takeDuty(client: Client): Promise<void> {
    const sent = performance.now();
    const { rowCount } = await client.query(
      `INSERT INTO duty (name, incarnation, until) VALUES ('all', $1, clock_timestamp() + $2::bigint * interval '1 millisecond')
       ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, until = excluded.until
       WHERE duty.incarnation = excluded.incarnation OR duty.until < clock_timestamp()`,
      [this.#incarnation, this.#lease],
    );
    this.#dutyUntil = rowCount === 1 ? sent + this.#lease : 0;
  }

  /** Everything open belongs to an instance of a living node, or is closed. */
  async #closeDead(client: Client): Promise<void> {
    const { log, closeLeftOpen } = this.#options;
    const gone = await client.query<{ name: string; host: string }>(
      `DELETE FROM node WHERE heartbeat < clock_timestamp() - $1::bigint * interval '1 millisecond' RETURNING name, host`,
      [this.#lease],
    );
    for (const { name, host } of gone.rows) log.error({ node: name, host }, 'a node is dead');
    const { rows } = await client.query<{ instance: string }>(
      `SELECT instance FROM (
         SELECT instance FROM reservation UNION SELECT instance FROM cmc_message WHERE instance IS NOT NULL
       ) AS open
       WHERE NOT EXISTS (SELECT FROM node WHERE node.instance = open.instance)`,
    );
    for (const { instance } of rows) await closeLeftOpen(instance);
  }

  async #connected(): Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    const client = await this.#options.connect();
    client.on('error', () => {
      if (this.#client === client) this.#client = undefined;
    });
    client.on('end', () => {
      if (this.#client === client) this.#client = undefined;
    });
    this.#client = client;
    await this.#lockName(client);
    return client;
  }

  async #disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }
}

async function standing(client: Client, name: string): Promise<Standing | undefined> {
  const { rows } = await client.query<{ incarnation: string; age: string; host: string }>(
    'SELECT incarnation, host, extract(epoch FROM clock_timestamp() - heartbeat)::text AS age FROM node WHERE name = $1',
    [name],
  );
  const [row] = rows;
  return row === undefined ? undefined : { ...row, age: Number(row.age) };
}

const isAborted = (signal: AbortSignal): boolean => signal.aborted;
