/**
 * A whole Estuary for a black-box test: the output of `scripts/quickstart` in a separate folder, with the
 * configuration changed as the test needs, and the built server running on it.
 */
import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { onTheWire, simpleCsr, type TestKey } from './csr.ts';
import type { FaultyLog } from './faulty-log.ts';
import { call, type Answer, type ClientTls } from './https.ts';
import { withWantedKeys } from './keys-in-hsm.ts';
import { makeQuickstart } from './quickstart.ts';
import { withWantedStore } from './store-in-postgres.ts';
import { startServer, type ListenerName, type ServerProcess, untilLogged } from './server-process.ts';
import { parseCertsOnly } from '../../src/pki/cms/cms.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { removeFolder } from './folders.ts';

export interface EstuaryOptions {
  /** Changes the parsed est.toml before the start. */
  readonly configure?: (config: TomlTable, dir: string) => void;
  readonly listeners?: readonly ListenerName[];
  /** The `server.js` of another build than `dist`. */
  readonly program?: string;
  /** Starts Node.js elsewhere, such as in other namespaces. */
  readonly node?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Added to the environment of the quickstart, which makes the PKI. */
  readonly quickstartEnv?: Readonly<Record<string, string>>;
  /** `ulimit -n` of the server. */
  readonly openFiles?: number;
  /** The standard output of the next start, in place of a pipe that is always read. */
  readonly log?: () => FaultyLog;
  /** Whether the test needs a process (server-process.ts). */
  readonly built?: boolean;
  /** How long each start may take, in milliseconds. */
  readonly timeout?: number;
  /** Of the quickstart's PKI: one of ML-DSA, with OpenSSL 3.5. */
  readonly algorithm?: string;
  /** The folder of a quickstart to copy instead of making one: several nodes have the same CAs. */
  readonly pki?: string;
}

export interface EstCall {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly chunked?: boolean;
  readonly agent?: Agent;
  /** A client certificate and its key, PEM. */
  readonly client?: ClientIdentity;
  /** HTTP Basic. */
  readonly password?: string;
  readonly tls?: Partial<ClientTls>;
}

export interface ClientIdentity {
  readonly cert: string;
  readonly key: string;
}

export interface AdminAnswer {
  readonly status: number;
  readonly json: Record<string, unknown>;
}

export interface NewOtp {
  readonly client_id?: string;
  readonly max_uses?: number;
  readonly expires_at?: string;
  readonly ca?: string;
}

/** Argon2 takes a tenth of a second of CPU for each password. Servers of startQuickstart (quickstart.ts) have it. */
export function hashOtpsCheaply(config: TomlTable, dir: string): void {
  Object.assign(section(config, 'otp'), { hash_algorithm: 'sha256-hmac', hmac_key_file: 'otp.key' });
  writeFileSync(join(dir, 'otp.key'), randomBytes(32), { mode: 0o600 });
}

/** A table inside a TOML table, made if it is not there. */
export function section(config: TomlTable, ...path: readonly string[]): TomlTable {
  let table = config;
  for (const key of path) {
    table[key] ??= {};
    const next = table[key];
    if (!isTable(next)) throw new TypeError(`${key} is no table`);
    table = next;
  }
  return table;
}

/** The n-th `[[ca]]`. */
export function caSection(config: TomlTable, index = 0): TomlTable {
  const list = config['ca'];
  const table: unknown = Array.isArray(list) ? list[index] : undefined;
  if (!isTable(table)) throw new TypeError(`no ca ${index}`);
  return table;
}

function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

export class Estuary {
  readonly dir: string;
  /** PEM of the root that the server and both CAs chain to. */
  readonly root: string;
  readonly adminToken: string;
  #server: ServerProcess;
  readonly #options: EstuaryOptions;

  constructor(dir: string, server: ServerProcess, options: EstuaryOptions) {
    this.dir = dir;
    this.#server = server;
    this.#options = options;
    this.root = readFileSync(join(dir, 'ca/root.pem'), 'latin1');
    this.adminToken = readFileSync(join(dir, 'admin/token'), 'latin1').trim();
  }

  static async start(wanted: EstuaryOptions = {}): Promise<Estuary> {
    const dir = mkdtempSync(join(tmpdir(), 'estuary-test-'));
    try {
      const options = await withWantedStore(withWantedKeys(wanted, dir));
      if (options.pki === undefined) await makeQuickstart(dir, options.algorithm, options.quickstartEnv);
      else cpSync(options.pki, dir, { recursive: true, filter: (path) => !path.endsWith('/data') });
      configureIn(dir, (config) => {
        hashOtpsCheaply(config, dir);
        options.configure?.(config, dir);
      });
      return new Estuary(dir, await launch(dir, options), options);
    } catch (error) {
      removeFolder(dir);
      throw error;
    }
  }

  get server(): ServerProcess {
    return this.#server;
  }

  /** What was added to the server's environment. */
  get env(): Readonly<Record<string, string>> {
    return this.#options.env ?? {};
  }

  /** Changes est.toml; a SIGHUP or a restart makes it count. */
  reconfigure(configure: (config: TomlTable, dir: string) => void): void {
    configureIn(this.dir, configure);
  }

  /** Starts the server again on the same folder, after it has ended. */
  async restart(): Promise<void> {
    this.#server = await launch(this.dir, this.#options);
  }

  /** The whole output up to now: the line of a new request is behind everything that was logged before it. */
  async outputSoFar(): Promise<string> {
    const { headers } = await this.est('cacerts');
    await untilLogged(this.server, { request_id: headers['x-request-id'] });
    return this.server.output();
  }

  /** A request on the EST listener; `path` is what follows `/.well-known/est/`. */
  est(path: string, options: EstCall = {}): Promise<Answer> {
    const authorization =
      options.password === undefined
        ? {}
        : { Authorization: `Basic ${Buffer.from(`device:${options.password}`).toString('base64')}` };
    return call({
      port: this.#server.port('est'),
      path: `/.well-known/est/${path}`,
      method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
      headers: { ...authorization, ...options.headers },
      tls: { ca: this.root, ...options.client, ...options.tls },
      ...(options.body === undefined ? {} : { body: options.body }),
      ...(options.chunked === undefined ? {} : { chunked: options.chunked }),
      ...(options.agent === undefined ? {} : { agent: options.agent }),
    });
  }

  /** A POST of a PKCS#10 with the right Content-Type. */
  enroll(body: string | Buffer, options: Omit<EstCall, 'body'> & { readonly path?: string } = {}): Promise<Answer> {
    const headers = { 'Content-Type': 'application/pkcs10', ...options.headers };
    return this.est(options.path ?? 'simpleenroll', { ...options, headers, body });
  }

  /**
   * A JSON request on the admin listener with the bearer token. A busy server answers a search with a part of the page,
   * which may be empty: the rest is asked for.
   */
  async admin(method: string, path: string, body?: unknown, token = this.adminToken): Promise<AdminAnswer> {
    const answer = await this.#adminCall(method, path, body, token);
    const { items, next_cursor } = answer.json;
    const url = new URL(path, 'https://localhost');
    const missing = Number(url.searchParams.get('limit') ?? 100) - (Array.isArray(items) ? items.length : 0);
    if (!Array.isArray(items) || typeof next_cursor !== 'string' || missing <= 0) return answer;
    url.searchParams.set('limit', String(missing));
    url.searchParams.set('cursor', next_cursor);
    const rest = await this.admin(method, `${url.pathname}${url.search}`, undefined, token);
    return { status: rest.status, json: { ...rest.json, items: [...itemsOf(answer.json), ...itemsOf(rest.json)] } };
  }

  async #adminCall(method: string, path: string, body: unknown, token: string): Promise<AdminAnswer> {
    const answer = await call({
      port: this.#server.port('admin'),
      path,
      method,
      tls: { ca: this.root },
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
    });
    const json: unknown = answer.text === '' ? {} : JSON.parse(answer.text);
    if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new TypeError('not a JSON object');
    return { status: answer.status, json: { ...json } };
  }

  /** A fresh OTP. */
  async otp(otp: NewOtp = {}): Promise<{ id: string; token: string }> {
    const { status, json } = await this.admin('POST', '/admin/otp', { client_id: 'device-1', ...otp });
    const { id, token } = json;
    if (status !== 201 || typeof id !== 'string' || typeof token !== 'string')
      throw new Error(`POST /admin/otp answered ${status}: ${JSON.stringify(json)}`);
    return { id, token };
  }

  /** Enrolls with a fresh OTP; the certificate and key, ready for mTLS. */
  async enrolled(
    key: TestKey,
    cn = 'device-1',
    dnsNames: readonly string[] = [],
    path = 'simpleenroll',
  ): Promise<ClientIdentity> {
    const { token } = await this.otp();
    const answer = await this.enroll(onTheWire(simpleCsr(key, cn, dnsNames)), { password: token, path });
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return { cert: certificatePem(answer), key: key.pem };
  }

  async stop(): Promise<void> {
    await this.#server.stop();
    removeFolder(this.dir);
  }
}

/** The DER certificates of a certs-only answer. */
export function certificatesOf(answer: Answer): Buffer[] {
  return parseCertsOnly(Buffer.from(answer.text, 'base64'));
}

/** The items of an admin list. */
export function itemsOf({ items }: Record<string, unknown>): Record<string, unknown>[] {
  if (!Array.isArray(items)) throw new TypeError('not a list');
  return items.map((item: unknown) => {
    if (typeof item !== 'object' || item === null) throw new TypeError('not a list of records');
    return { ...item };
  });
}

/** The one certificate of an enrollment's answer, PEM. */
export function certificatePem(answer: Answer): string {
  const [der, ...more] = certificatesOf(answer);
  if (der === undefined || more.length > 0) throw new Error('not exactly one certificate');
  return encodePem('CERTIFICATE', der);
}

function configureIn(dir: string, configure: EstuaryOptions['configure']): void {
  if (configure === undefined) return;
  const file = join(dir, 'est.toml');
  const config = parse(readFileSync(file, 'utf8'));
  configure(config, dir);
  writeFileSync(file, stringify(config));
}

function launch(dir: string, options: EstuaryOptions): Promise<ServerProcess> {
  return startServer({
    config: join(dir, 'est.toml'),
    ...(options.listeners === undefined ? {} : { listeners: options.listeners }),
    ...(options.program === undefined ? {} : { program: options.program }),
    ...(options.node === undefined ? {} : { node: options.node }),
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.openFiles === undefined ? {} : { openFiles: options.openFiles }),
    ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
    ...(options.log === undefined ? {} : { log: options.log() }),
    ...(options.built === undefined ? {} : { built: options.built }),
  });
}
