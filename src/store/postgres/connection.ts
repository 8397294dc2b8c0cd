/** A pipelined connection to a writable PostgreSQL server, with all time limits set. */
import pg from 'pg';
import { parsePostgresUrl, type PostgresUrl } from '../../config/postgres-url.ts';
import { type EstuaryError, failed } from '../../errors.ts';
import { anchoredAt } from '../../https-client.ts';
import { storeFailed, StoreLost, storeUnavailable } from '../calls/errors.ts';
import { isRefusedLogin, isRolledBack, isStatementError, messageOf, toConnectionError } from './errors.ts';
import type { Answer, Prepared } from './queries.ts';

export interface PostgresServer {
  /** As in libpq: `postgresql://user:password@host:5432/database`, with several hosts separated by commas. A secret. */
  readonly url: string;
  /** Default: per the URL's `sslmode`. */
  readonly tls?: PostgresTls | undefined;
}

/** PEM. */
export interface PostgresTls {
  /** Trust anchors for the server's certificate; default: the system's. */
  readonly anchors?: string | undefined;
  readonly certificate?: string | undefined;
  readonly private_key?: string | undefined;
}

/** Milliseconds to connect. */
const CONNECT = 3000;
/** Milliseconds per statement, on the server. */
const STATEMENT = 10_000;
/** Milliseconds to wait for a lock. */
const LOCK = 5000;
/** Milliseconds after which the server ends an idle transaction, whose client is gone. */
const IDLE = 10_000;
/** Milliseconds to wait for a response: the network or the server may be gone silently. */
const ANSWER = 12_000;
/** The same for a node's lease. */
const NODE_ANSWER = 4000;
/**
 * Warning that the wait for a synchronous standby was abandoned: the commit is on one server only, and may be lost with
 * it.
 */
const NOT_REPLICATED = '01000';
/** in_failed_sql_transaction. */
const ABORTED = '25P02';

/** What a role or database may set otherwise. Locks are useless to transactions that took their snapshot before. */
const SESSION = [
  "SET default_transaction_isolation = 'read committed'",
  'SET idle_session_timeout = 0',
  // Warnings are read.
  'SET client_min_messages = warning',
].join('; ');

const SETTINGS = [
  SESSION,
  `SET statement_timeout = ${STATEMENT}`,
  `SET lock_timeout = ${LOCK}`,
  `SET idle_in_transaction_session_timeout = ${IDLE}`,
  'SET tcp_keepalives_idle = 5',
  'SET tcp_keepalives_interval = 2',
  'SET tcp_keepalives_count = 3',
  // Keep stricter settings.
  `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')`,
  `SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS read_only`,
].join('; ');

/** `bigint`, which the library returns as text, holds times and positions that fit a number. */
export const INT8 = pg.types.builtins.INT8;
export type CommitResult = 'committed' | 'rolled back';

export class Connection {
  readonly #client: pg.Client;
  #broken: Error | undefined;
  #warned = false;
  #reason: pg.DatabaseError | undefined;
  #isGathering = false;

  constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => (this.#broken ??= error));
    client.on('end', () => (this.#broken ??= new Error('the connection has ended')));
    client.on('notice', ({ code }) => (this.#warned ||= code === NOT_REPLICATED));
  }

  /** Whether the connection is unusable. */
  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /** @throws EstuaryError, or the {@link pg.DatabaseError} of a rejected statement */
  async query({ name, text, values }: Prepared): Promise<Answer> {
    this.#gather();
    return this.#guarded(() => this.#client.query({ name, text, values: [...values] }));
  }

  /** Runs statements without parameters, separated by semicolons. */
  async script(sql: string): Promise<void> {
    await this.#guarded(() => this.#client.query(sql));
  }

  /**
   * Commits. Statements sent before without waiting also decide about it.
   * @throws StoreLost if the result is unknown
   */
  async commit(): Promise<CommitResult> {
    this.#warned = false;
    let command: string;
    try {
      ({ command } = await this.#client.query('COMMIT'));
    } catch (error) {
      if (isRolledBack(error)) return 'rolled back';
      this.end();
      throw new StoreLost(`COMMIT: ${messageOf(error)}`);
    }
    if (command !== 'COMMIT') return 'rolled back';
    if (this.hasWarned()) throw new StoreLost('no standby confirmed the commit');
    return 'committed';
  }

  /** Closes it at once; pending statements fail. */
  end(): void {
    this.#broken ??= new Error('the connection was ended');
    this.#client.end().catch(() => undefined);
  }

  /** Whether a notice since then said that no standby has confirmed. */
  private hasWarned(): boolean {
    return this.#warned;
  }

  /**
   * The error of a statement. Statements after a rejected one only report an aborted transaction, and may reach their
   * callers first.
   */
  private reasonOf(error: pg.DatabaseError): pg.DatabaseError {
    if (error.code !== ABORTED) this.#reason = error;
    return this.#reason ?? error;
  }

  /** Sends the statements of this turn of the event loop with one system call. */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const { stream } = this.#client.connection;
    stream.cork();
    process.nextTick(() => {
      this.#isGathering = false;
      stream.uncork();
    });
  }

  async #guarded<Result>(ask: () => Promise<Result>): Promise<Result> {
    try {
      return await ask();
    } catch (error) {
      if (isStatementError(error)) throw this.reasonOf(error);
      // Any other error ends the connection.
      this.end();
      throw toConnectionError(error);
    }
  }
}

/**
 * Connects to the first writable host.
 * @param purpose shown in `pg_stat_activity`
 * @param answer milliseconds to wait for a response
 * @throws EstuaryError 503 `STORE_UNAVAILABLE`
 */
export function connect(server: PostgresServer, purpose: string, answer = ANSWER): Promise<Connection> {
  return firstHost(server, (target) => connectTo(target, purpose, answer));
}

/** Connects to the first host of a URL that succeeds. @throws EstuaryError 503 `STORE_UNAVAILABLE` */
export async function firstHost<Connected>(
  { url: text, tls }: PostgresServer,
  connectTo: (target: pg.ClientConfig) => Promise<Connected>,
): Promise<Connected> {
  const url = parsePostgresUrl(text);
  if (url === undefined) throw storeFailed('store.url is not a URL of a PostgreSQL database');
  const reasons: string[] = [];
  let refusal: EstuaryError | undefined;
  for (const { host, port } of url.hosts) {
    try {
      return await connectTo({
        host,
        port,
        user: url.user ?? 'estuary',
        password: url.password ?? '',
        database: url.database ?? url.user ?? 'estuary',
        options: url.options,
        application_name: url.application_name,
        connectionTimeoutMillis: url.connect_timeout === undefined ? CONNECT : url.connect_timeout * 1000,
        keepAlive: true,
        ssl: tlsOptions(host, url, tls) ?? false,
      });
    } catch (error) {
      reasons.push(`${host}:${port}: ${messageOf(error)}`);
      const converted = toConnectionError(error);
      if (isRefusedLogin(converted)) refusal = converted;
    }
  }
  throw storeUnavailable(reasons.join('; '), refusal?.cause);
}

/** Sessions to compare: other clients of a pooler may take one between two statements. */
const LOOKS = 20;

/**
 * Refuses a connection pooler that shares sessions between clients (transaction pooling): settings, prepared statements
 * and locks of a node would end up in another client's session.
 * @throws EstuaryError 500 `STORE_POOLED`; 503 `STORE_UNAVAILABLE`
 */
export async function refuseSharedSessions(server: PostgresServer): Promise<void> {
  const shared = await firstHost(server, async (target) => {
    const [first, second] = [clientOf(target, 'check', CONNECT), clientOf(target, 'check', CONNECT)];
    try {
      await first.connect();
      // A pooler reports its own number instead of the session's.
      if (Reflect.get(first, 'processID') === (await sessionOf(first))) return undefined;
      await second.connect();
      for (let n = 0; n < LOOKS; n++) if (await isShared(first, second)) return `${target.host}:${target.port}`;
      return undefined;
    } finally {
      for (const client of [first, second]) client.end().catch(() => undefined);
    }
  });
  if (shared !== undefined)
    throw failed(
      'STORE_POOLED',
      `The connection pooler at ${shared} (such as PgBouncer) uses transaction pooling. Set pool_mode = session, or connect to PostgreSQL directly.`,
    );
}

async function isShared(first: pg.Client, second: pg.Client): Promise<boolean> {
  const before = await sessionOf(first);
  try {
    await second.query('BEGIN');
  } catch (error) {
    // PgBouncer's statement pooling does not allow transactions: protocol_violation.
    if (error instanceof pg.DatabaseError && error.code === '08P01') return true;
    throw error;
  }
  const taken = await sessionOf(second);
  const after = await sessionOf(first);
  await second.query('COMMIT');
  return taken === before || after !== before;
}

async function sessionOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}

function clientOf(target: pg.ClientConfig, purpose: string, answer: number): pg.Client {
  const client = new pg.Client({
    ...target,
    application_name: target.application_name ?? `estuary ${purpose}`,
    query_timeout: answer,
    keepAliveInitialDelayMillis: 5000,
  });
  // The next statement reports the error.
  client.on('error', () => undefined);
  return client;
}

/**
 * Opens long-lived connections, for the lease and for mutexes.
 * @returns a function that connects to the URL's writable host, and throws 503 `STORE_UNAVAILABLE` without one
 */
export function connector(server: PostgresServer): () => Promise<pg.Client> {
  return () =>
    firstHost(server, async (target) => {
      const client = clientOf(target, 'node', NODE_ANSWER);
      try {
        await client.connect();
        // Not in the startup message: PgBouncer rejects settings there.
        await client.query(`${SESSION}; SET statement_timeout = ${NODE_ANSWER}`);
        const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
        if (rows[0]?.standby !== false) throw new Error('it is a standby');
        return client;
      } catch (error) {
        client.end().catch(() => undefined);
        throw error;
      }
    });
}

async function connectTo(target: pg.ClientConfig, purpose: string, answer: number): Promise<Connection> {
  const client = clientOf({ ...target, pipeline: true }, purpose, answer);
  client.setTypeParser(INT8, Number);
  const connection = new Connection(client);
  try {
    await client.connect();
    const results: unknown = await client.query(SETTINGS);
    // The last of several results.
    const { rows } = [results].flat().at(-1) as pg.QueryResult<{ read_only: boolean }>;
    if (rows[0]?.read_only !== false) throw new Error('it accepts no writes (a standby, or read-only)');
    return connection;
  } catch (error) {
    connection.end();
    throw error;
  }
}

/** Per `[store.tls]`, otherwise the URL's `sslmode`. undefined: no TLS. */
function tlsOptions(host: string, { sslmode }: PostgresUrl, tls: PostgresTls | undefined): pg.ClientConfig['ssl'] {
  // As in libpq, never for a Unix socket.
  if ((tls === undefined && sslmode === 'disable') || host.startsWith('/')) return undefined;
  return {
    rejectUnauthorized: true,
    ...(sslmode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    // The name to verify if the host is an address.
    host,
    ...anchoredAt(tls?.anchors),
    cert: tls?.certificate,
    key: tls?.private_key,
  };
}
