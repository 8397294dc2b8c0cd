/**
 * PostgreSQL for tests: clusters of their own, on loopback, in a temporary folder. `postgres` refuses to be root, and then runs as the user
 * that Debian's package makes.
 */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { accepts, freePort } from './ports.ts';
import { killed, untilReady } from './spawned.ts';
import { removeFolder } from './folders.ts';
import { until } from './until.ts';

const run = promisify(execFile);

/** Debian keeps the server's programs in a folder for each version, which is on nobody's PATH. */
const VERSIONS = '/usr/lib/postgresql';
/** The variable with the folder of what a run has in common, such as its cluster: see shared-by-run.ts. */
export const SHARED_FOLDER = 'ESTUARY_TEST_SHARED';
/** Who owns the databases. */
const OWNER = 'estuary';

/** The folder of the newest version's programs, or undefined. */
export function postgresPrograms(): string | undefined {
  try {
    const [newest] = readdirSync(VERSIONS)
      .filter((version) => readdirSync(join(VERSIONS, version, 'bin')).includes('initdb'))
      .sort((a, b) => Number(b) - Number(a));
    return newest === undefined ? undefined : join(VERSIONS, newest, 'bin');
  } catch {
    return undefined;
  }
}

export interface ClusterOptions {
  /** Every commit reaches the disk. Off is faster; tests do not crash the machine. */
  readonly durable?: boolean;
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** TLS is spoken with it. PEM. */
  readonly tls?: { readonly certificate: string; readonly privateKey: string; readonly clientAnchors?: string };
  /** In place of what lets everybody in from loopback. */
  readonly hba?: readonly string[];
  /** Variables of the server's environment, such as `LOCPATH`. */
  readonly env?: Readonly<Record<string, string>>;
  /** An empty folder, in place of a new one; the cluster leaves it there. */
  readonly folder?: string;
}

/** A cluster: one PostgreSQL server with its databases. */
export class PostgresCluster {
  readonly folder: string;
  readonly port: number;
  #process: ChildProcess | undefined;
  readonly #keepFolder: boolean;

  private constructor(folder: string, port: number, keepFolder = false) {
    this.folder = folder;
    this.port = port;
    this.#keepFolder = keepFolder;
  }

  /** Makes one and starts it. */
  static async start(options: ClusterOptions = {}): Promise<PostgresCluster> {
    const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'estuary-postgres-'));
    const cluster = new PostgresCluster(folder, await freePort(), options.folder !== undefined);
    try {
      give(folder);
      asServer('initdb', ['-D', cluster.data, '-U', OWNER, '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C']);
      cluster.#configure(options);
      await cluster.launch(options.env);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** One that another process of the tests has started in a folder. */
  static at(folder: string, port: number): PostgresCluster {
    return new PostgresCluster(folder, port, true);
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  /** What the server has logged. */
  get log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8');
  }

  /** The pid of the server, while it runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether the server that this process has started has not ended. */
  get isRunning(): boolean {
    const child = this.#process;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Starts the server again, after it has ended; resolves when it answers. */
  async launch(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const { command, args, cwd } = asServerCommand('postgres', ['-D', this.data]);
    const log = openSync(join(this.folder, 'log'), 'a');
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    this.#process = child;
    await untilReady(
      'PostgreSQL',
      async () => {
        if (child.exitCode !== null) throw new Error(`PostgreSQL did not start: ${this.log}`);
        return (await accepts(this.port)) && (await this.#answers());
      },
      60_000,
    );
  }

  /** Ends the server: `SIGINT` closes its connections, `SIGQUIT` is a crash. Its data stays. */
  async end(signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT'): Promise<void> {
    const child = this.#process;
    if (child === undefined || !this.isRunning) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }

  /** Does not wait for the server at the end of this process. */
  leave(): void {
    this.#process?.unref();
  }

  /** Ends the server, and removes what it has left. */
  async stop(): Promise<void> {
    await this.end('SIGQUIT');
    await killed(this.#process);
    if (!this.#keepFolder) removeFolder(this.folder);
  }

  /** The URL of a database, as in `[store] url_file`. */
  url(database: string): string {
    return `postgresql://${OWNER}@127.0.0.1:${this.port}/${database}`;
  }

  /** A new database, empty or a copy of another one. @param more options of CREATE DATABASE @returns its URL */
  async createDatabase(template = 'template0', more = ''): Promise<string> {
    const name = `test_${randomUUID().replaceAll('-', '')}`;
    await until('the template is not in use', () =>
      this.sql(`CREATE DATABASE ${name} TEMPLATE ${template} ${more}`).then(
        () => true,
        (error: unknown) => {
          // PostgreSQL waits five seconds for a session that is ending.
          if (!String(error).includes('is being accessed by other users')) throw error;
          return false;
        },
      ),
    );
    return this.url(name);
  }

  async dropDatabase(url: string): Promise<void> {
    await this.sql(`DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
  }

  /** Carries out SQL. @returns rows of columns, as texts */
  sql(statement: string, database = 'postgres'): Promise<string[][]> {
    return psql(this.url(database), statement);
  }

  /**
   * A further server that repeats what this one does, and without which this one commits nothing from now on.
   *
   * @param given as in {@link ClusterOptions}
   */
  async standby(given?: string): Promise<PostgresCluster> {
    const folder = given ?? mkdtempSync(join(tmpdir(), 'estuary-postgres-'));
    const standby = new PostgresCluster(folder, await freePort(), given !== undefined);
    try {
      give(folder);
      asServer('pg_basebackup', ['-d', this.url('postgres'), '-D', standby.data, '-R', '-X', 'stream', '-c', 'fast']);
      // The last of a setting counts.
      appendFileSync(join(standby.data, 'postgresql.conf'), `port = ${standby.port}\nsynchronous_standby_names = ''\n`);
      await standby.launch();
      await this.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await this.sql('SELECT pg_reload_conf()');
      await untilReady(
        'the standby',
        async () => (await this.sql('SELECT sync_state FROM pg_stat_replication')).some(([state]) => state === 'sync'),
        60_000,
      );
      return standby;
    } catch (error) {
      await standby.stop();
      throw error;
    }
  }

  /** Makes a standby the server. */
  async promote(): Promise<void> {
    await this.sql('SELECT pg_promote(true, 300)');
  }

  #configure({ durable = false, settings = {}, tls, hba }: ClusterOptions): void {
    const all: Record<string, string> = {
      listen_addresses: "'127.0.0.1'",
      port: String(this.port),
      unix_socket_directories: "''",
      max_connections: '200',
      shared_buffers: '32MB',
      wal_level: 'replica',
      logging_collector: 'off',
      log_min_messages: 'warning',
      log_line_prefix: "'%m [%p] %d '",
      ...(durable ? {} : { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'on' }),
      ...(tls === undefined ? {} : { ssl: 'on', ssl_cert_file: "'server.pem'", ssl_key_file: "'server.key'" }),
      ...(tls?.clientAnchors === undefined ? {} : { ssl_ca_file: "'clients.pem'" }),
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}\n`);
    appendFileSync(join(this.data, 'postgresql.conf'), lines.join(''));
    if (hba !== undefined) writeFileSync(join(this.data, 'pg_hba.conf'), hba.map((line) => `${line}\n`).join(''));
    if (tls === undefined) return;
    const files = {
      'server.pem': tls.certificate,
      'server.key': tls.privateKey,
      'clients.pem': tls.clientAnchors ?? '',
    };
    for (const [name, pem] of Object.entries(files)) {
      const path = join(this.data, name);
      writeFileSync(path, pem, { mode: 0o600 });
      give(path);
    }
  }

  /** It may listen and not take anybody yet. */
  async #answers(): Promise<boolean> {
    const programs = postgresPrograms() ?? '';
    return run(join(programs, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(this.port), '-q']).then(
      () => true,
      () => false,
    );
  }
}

/** The cluster that all test files of a run have in common; the first that asks starts it, and the end of the run ends it. */
export async function sharedPostgres(): Promise<PostgresCluster> {
  const folder = process.env[SHARED_FOLDER];
  if (folder === undefined) throw new Error('vitest.config.ts names no global setup');
  const known = join(folder, 'port');
  try {
    mkdirSync(join(folder, 'starting'));
  } catch {
    await untilReady('the shared PostgreSQL', () => Promise.resolve(existsSync(known)));
    return PostgresCluster.at(folder, Number(readFileSync(known, 'utf8')));
  }
  const cluster = await PostgresCluster.start({ folder });
  writeFileSync(`${known}.new`, String(cluster.port));
  renameSync(`${known}.new`, known);
  cluster.leave();
  return cluster;
}

/** Carries out SQL on the database of a URL. @returns rows of columns, as texts */
export async function psql(url: string, statement: string): Promise<string[][]> {
  const options = ['-X', '-q', '-A', '-t', '-F', '\x1f', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', statement];
  const { stdout } = await run(join(postgresPrograms() ?? '', 'psql'), options, { maxBuffer: 64 << 20 });
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\x1f'));
}

/** A table, each value as the octets that it is. */
export async function copyOut(url: string, table: string): Promise<Buffer> {
  const args = ['-X', '-q', '-d', url, '-c', `COPY ${table} TO STDOUT (FORMAT binary)`];
  const options = { encoding: 'buffer', maxBuffer: 256 << 20 } as const;
  return (await run(join(postgresPrograms() ?? '', 'psql'), args, options)).stdout;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** The server's user; undefined: the user of the test. */
function account(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ['-u', '-g'].map((option) =>
    Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' })),
  );
  return { uid: uid ?? 0, gid: gid ?? 0 };
}

/** Hands a file or a folder to whom the server runs as. */
function give(path: string): void {
  const owner = account();
  if (owner === undefined) return;
  chownSync(path, owner.uid, owner.gid);
  if (!path.includes('/data/')) chmodSync(path, 0o711);
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

/** A program of PostgreSQL, as the user who owns the data. */
function asServerCommand(program: string, args: readonly string[]): Command {
  const path = join(postgresPrograms() ?? '', program);
  const owner = account();
  // A folder that this user may enter.
  if (owner === undefined) return { command: path, args, cwd: tmpdir() };
  const as = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups', '--', path];
  return { command: 'setpriv', args: [...as, ...args], cwd: tmpdir() };
}

function asServer(program: string, args: readonly string[]): void {
  const { command, args: all, cwd } = asServerCommand(program, args);
  execFileSync(command, all, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
}
