/** A connection to PostgreSQL: pipelined, with every limit of time set, to a server that takes writes. */
import pg from 'pg';
import { parsePostgresUrl, type PostgresUrl } from '../../config/postgres-url.ts';
import type { PostgresServer, PostgresTls } from '../calls/database-options.ts';
import { describe, failed } from '../../errors.ts';
import { storeFailed, StoreLost, storeUnavailable } from '../calls/errors.ts';
import { isStatementError, toConnectionError } from './errors.ts';
import type { Answer, Prepared } from './queries.ts';

/** Milliseconds for a connection to come about. */
const CONNECT = 3000;
/** Milliseconds for a statement, as the server counts them. */
const STATEMENT = 10_000;
/** Milliseconds that it waits for somebody's lock. */
const LOCK = 5000;
/** Milliseconds after which the server ends a transaction in which nothing happens: whoever had it is gone. */
const IDLE = 10_000;
/** Milliseconds for an answer, as this process counts them: the network, or the server, may be gone without a word. */
const ANSWER = 12_000;
/** The same for the lease of a node. */
const NODE_ANSWER = 4000;
/** A wait for a synchronous standby was given up: the commit stands on one server, and may be lost with it. */
const NOT_REPLICATED = '01000';
/** in_failed_sql_transaction */
const ABORTED = '25P02';

const SETTINGS = [
  `SET statement_timeout = ${STATEMENT}`,
  `SET lock_timeout = ${LOCK}`,
  `SET idle_in_transaction_session_timeout = ${IDLE}`,
  'SET tcp_keepalives_idle = 5',
  'SET tcp_keepalives_interval = 2',
  'SET tcp_keepalives_count = 3',
  // What is stricter stays.
  `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')`,
  `SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS read_only`,
].join('; ');

/** `bigint` holds times and positions, which a number holds as well. */
const INT8 = pg.types.builtins.INT8;
/** What a COMMIT came to. */
export type CommitResult = 'committed' | 'rolled back';

export class Connection {
  readonly #client: pg.Client;
  #broken: Error | undefined;
  #warned = false;
  #reason: pg.DatabaseError | undefined;

  constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => (this.#broken ??= error));
    client.on('end', () => (this.#broken ??= new Error('the connection has ended')));
    client.on('notice', ({ code }) => (this.#warned ||= code === NOT_REPLICATED));
  }

  /** Whether nothing can be asked any more. */
  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /** @throws EstuaryError, or the {@link pg.DatabaseError} of a statement that the server refuses */
  async query({ name, text, values }: Prepared): Promise<Answer> {
    return this.#guarded(() => this.#client.query({ name, text, values: [...values] }));
  }

  /** Statements without parameters, several with semicolons between. */
  async script(sql: string): Promise<void> {
    await this.#guarded(() => this.#client.query(sql));
  }

  /**
   * Commits. What was sent before, and not waited for, decides about it too.
   *
   * @throws StoreLost where it is not known whether it is committed
   */
  async commit(): Promise<CommitResult> {
    this.#warned = false;
    let command: string;
    try {
      ({ command } = await this.#client.query('COMMIT'));
    } catch (error) {
      if (isStatementError(error)) return 'rolled back';
      this.end();
      throw new StoreLost(`COMMIT: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (command !== 'COMMIT') return 'rolled back';
    if (this.hasWarned()) throw new StoreLost('no standby has confirmed the commit');
    return 'committed';
  }

  /** Ends it at once; what is under way fails. */
  end(): void {
    this.#broken ??= new Error('the connection was ended');
    this.#client.end().catch(() => undefined);
  }

  /** Whether a notice said since that no standby has confirmed. */
  private hasWarned(): boolean {
    return this.#warned;
  }

  /**
   * What a statement fails with. Whatever is sent behind one that was refused is told no more than that the transaction is aborted, and may
   * reach its caller sooner.
   */
  private reasonOf(error: pg.DatabaseError): pg.DatabaseError {
    if (error.code !== ABORTED) this.#reason = error;
    return this.#reason ?? error;
  }

  async #guarded<Result>(ask: () => Promise<Result>): Promise<Result> {
    try {
      return await ask();
    } catch (error) {
      if (isStatementError(error)) throw this.reasonOf(error);
      // What is not the server's word on a statement is the end of the connection, or has to be.
      this.end();
      throw toConnectionError(error);
    }
  }
}

/**
 * Connects to the first host that takes writes.
 *
 * @param purpose shown in `pg_stat_activity`
 * @param answer milliseconds for the answer to a statement
 * @throws EstuaryError 503 `STORE_UNAVAILABLE`
 */
export function connect(server: PostgresServer, purpose: string, answer = ANSWER): Promise<Connection> {
  return firstHost(server, (target) => connectTo(target, purpose, answer));
}

/**
 * What connects to the first host of a URL where that succeeds.
 *
 * @throws EstuaryError 503 `STORE_UNAVAILABLE`
 */
export async function firstHost<Connected>(
  { url: text, tls }: PostgresServer,
  connectTo: (target: pg.ClientConfig) => Promise<Connected>,
): Promise<Connected> {
  const url = parsePostgresUrl(text);
  if (url === undefined) throw storeFailed('store.url is no URL of a PostgreSQL database');
  const reasons: string[] = [];
  for (const { host, port } of url.hosts) {
    try {
      return await connectTo({
        host,
        port,
        user: url.user ?? 'estuary',
        password: url.password ?? '',
        database: url.database ?? url.user ?? 'estuary',
        keepAlive: true,
        ssl: tlsOptions(host, url, tls) ?? false,
      });
    } catch (error) {
      reasons.push(`${host}:${port}: ${reasonOf(error)}`);
    }
  }
  throw storeUnavailable(reasons.join('; '));
}

/** Sessions that are compared, because other clients of a pooler may take one between two statements. */
const LOOKS = 20;

/**
 * Refuses a connection pooler that shares sessions between clients (transaction pooling): what a node sets, prepares and locks in its
 * session would be another client's.
 *
 * @throws EstuaryError 500 `STORE_POOLED`; 503 `STORE_UNAVAILABLE`
 */
export async function refuseSharedSessions(server: PostgresServer): Promise<void> {
  const shared = await firstHost(server, async (target) => {
    const [one, other] = [clientOf(target, 'check', CONNECT), clientOf(target, 'check', CONNECT)];
    try {
      await one.connect();
      // A pooler gives clients a number of its own, in place of the number of the session.
      if (Reflect.get(one, 'processID') === (await sessionOf(one))) return undefined;
      await other.connect();
      for (let n = 0; n < LOOKS; n++) if (await isShared(one, other)) return `${target.host}:${target.port}`;
      return undefined;
    } finally {
      for (const client of [one, other]) client.end().catch(() => undefined);
    }
  });
  if (shared !== undefined)
    throw failed(
      'STORE_POOLED',
      `The connection pooler at ${shared} (such as PgBouncer) uses transaction pooling. Set pool_mode = session, or connect to PostgreSQL directly.`,
    );
}

async function isShared(one: pg.Client, other: pg.Client): Promise<boolean> {
  const before = await sessionOf(one);
  try {
    await other.query('BEGIN');
  } catch (error) {
    // PgBouncer's statement pooling allows no transactions.
    if (/pooling/.test(describe(error))) return true;
    throw error;
  }
  const taken = await sessionOf(other);
  const after = await sessionOf(one);
  await other.query('COMMIT');
  return taken === before || after !== before;
}

async function sessionOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}

function clientOf(target: pg.ClientConfig, purpose: string, answer: number): pg.Client {
  const client = new pg.Client({
    ...target,
    application_name: `estuary ${purpose}`,
    connectionTimeoutMillis: CONNECT,
    query_timeout: answer,
    keepAliveInitialDelayMillis: 5000,
  });
  // Whoever uses it finds out at the next statement.
  client.on('error', () => undefined);
  return client;
}

/**
 * A connection that stays the same for long, or is held for a while: for the lease and for turns.
 *
 * @returns what connects to that host of the URL which takes writes; it throws 503 `STORE_UNAVAILABLE` where none does
 */
export function connector(server: PostgresServer): () => Promise<pg.Client> {
  return () =>
    firstHost(server, async (target) => {
      const client = clientOf(target, 'node', NODE_ANSWER);
      try {
        await client.connect();
        // Not at the start of the connection: PgBouncer refuses settings there.
        await client.query(`SET statement_timeout = ${NODE_ANSWER}`);
        const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
        if (rows[0]?.standby !== false) throw new Error('it is a standby');
        return client;
      } catch (error) {
        client.end().catch(() => undefined);
        throw error;
      }
    });
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message || error.name : String(error));

async function connectTo(target: pg.ClientConfig, purpose: string, answer: number): Promise<Connection> {
  const client = new pg.Client({
    ...target,
    application_name: `estuary ${purpose}`,
    connectionTimeoutMillis: CONNECT,
    query_timeout: answer,
    keepAliveInitialDelayMillis: 5000,
    pipeline: true,
  });
  client.setTypeParser(INT8, Number);
  const connection = new Connection(client);
  try {
    await client.connect();
    const results: unknown = await client.query(SETTINGS);
    if (isReadOnly(results)) throw new Error('it takes no writes (a standby, or read-only)');
    return connection;
  } catch (error) {
    connection.end();
    throw error;
  }
}

/** The last of several results. */
function isReadOnly(results: unknown): boolean {
  const last: unknown = Array.isArray(results) ? results.at(-1) : results;
  const { rows } = last as pg.QueryResult<{ read_only: boolean }>;
  return rows[0]?.read_only !== false;
}

/** As `[store.tls]` says, else the URL's `sslmode`. undefined: TLS is not spoken. */
function tlsOptions(host: string, url: PostgresUrl, tls: PostgresTls | undefined): pg.ClientConfig['ssl'] {
  const mode = url.parameters.get('sslmode') ?? 'disable';
  if (tls === undefined && ['disable', 'allow', 'prefer'].includes(mode)) return undefined;
  return {
    rejectUnauthorized: true,
    // What the certificate is compared with where it is an address.
    host,
    ...(tls?.anchors === undefined ? {} : { ca: tls.anchors }),
    ...(tls?.certificate === undefined ? {} : { cert: tls.certificate }),
    ...(tls?.private_key === undefined ? {} : { key: tls.private_key }),
  };
}
