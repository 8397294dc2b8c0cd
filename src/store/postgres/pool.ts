/** A process's read connections. */
import { measured } from '../../dependency-calls.ts';
import type { EstuaryError } from '../../errors.ts';
import type { PostgresServer } from './connection.ts';
import { storeUnavailable } from '../calls/errors.ts';
import { isAnswer, MAX_WAITING } from '../calls/write-queue.ts';
import { connect, type Connection } from './connection.ts';
import { isInTheWay, isStatementError, toEstuaryError } from './errors.ts';
import type { Answer, Prepared } from './queries.ts';

/** Milliseconds that a read waits for a connection. */
const MAX_WAIT = 3000;

interface Waiting {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export class Pool {
  readonly #server: PostgresServer;
  readonly #purpose: string;
  readonly #size: number;
  readonly #check: (connection: Connection) => Promise<void>;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #connecting = 0;
  #waiting: Waiting[] = [];
  #closed = false;

  /**
   * @param purpose shown in `pg_stat_activity`
   * @param size maximum connections
   * @param check throws if a new connection must not be used
   */
  constructor(
    server: PostgresServer,
    purpose: string,
    size: number,
    check: (connection: Connection) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#server = server;
    this.#purpose = purpose;
    this.#size = size;
    this.#check = check;
  }

  /** Connects once. @throws EstuaryError the problem */
  async start(): Promise<void> {
    this.#release(await this.#acquire());
  }

  async query(statement: Prepared): Promise<Answer> {
    return measured({ dependency: 'store_read' }, () => this.#query(statement), isAnswer);
  }

  close(): void {
    this.#closed = true;
    for (const waiting of this.#waiting.splice(0)) this.#refuse(waiting, storeUnavailable('the store is closed'));
    for (const connection of this.#all) connection.end();
    this.#all.clear();
  }

  async #query(statement: Prepared): Promise<Answer> {
    for (let fresh = false; ; fresh = true) {
      const connection = await this.#acquire();
      try {
        return await connection.query(statement);
      } catch (error) {
        // An idle connection may have ended unnoticed, or a migration interfered; reads are retried once.
        if ((isStatementError(error) && !isInTheWay(error)) || fresh || this.#closed) throw toEstuaryError(error);
      } finally {
        this.#release(connection);
      }
    }
  }

  async #acquire(): Promise<Connection> {
    if (this.#closed) throw storeUnavailable('the store is closed');
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isBroken) return idle;
      this.#all.delete(idle);
    }
    if (this.#all.size + this.#connecting < this.#size) return this.#connect();
    if (this.#waiting.length >= MAX_WAITING) throw storeUnavailable('too many queries wait for a connection');
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        resolve,
        reject,
        timer: setTimeout(() => {
          this.#waiting = this.#waiting.filter((other) => other !== waiting);
          reject(storeUnavailable('no free connection to the database in time. Raise store.pool_size.'));
        }, MAX_WAIT),
      };
      this.#waiting.push(waiting);
    });
  }

  async #connect(): Promise<Connection> {
    this.#connecting++;
    try {
      const connection = await this.#connected();
      if (this.#closed) {
        connection.end();
        throw storeUnavailable('the store is closed');
      }
      this.#all.add(connection);
      return connection;
    } catch (error) {
      // Without connections, waiting reads fail now.
      if (this.#all.size === 0)
        for (const waiting of this.#waiting.splice(0)) this.#refuse(waiting, toEstuaryError(error));
      throw error;
    } finally {
      this.#connecting--;
    }
  }

  async #connected(): Promise<Connection> {
    const connection = await connect(this.#server, this.#purpose);
    try {
      await this.#check(connection);
      return connection;
    } catch (error) {
      connection.end();
      throw error;
    }
  }

  #refuse(waiting: Waiting, error: EstuaryError): void {
    clearTimeout(waiting.timer);
    waiting.reject(error);
  }

  #release(connection: Connection): void {
    if (connection.isBroken || this.#closed) {
      this.#all.delete(connection);
      const [next] = this.#waiting;
      if (next === undefined || this.#closed) return;
      this.#waiting.shift();
      clearTimeout(next.timer);
      this.#connect().then(next.resolve, next.reject);
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#idle.push(connection);
      return;
    }
    clearTimeout(next.timer);
    next.resolve(connection);
  }
}
