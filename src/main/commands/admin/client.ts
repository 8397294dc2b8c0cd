/** HTTP client for the admin API over TLS with server name checks. Errors say what to do. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { codeOf, describe } from '../../../errors.ts';
import { anchoredAt } from '../../../https-client.ts';
import { CommandError, EXIT, UsageError } from '../command.ts';
import { printable } from '../text-table.ts';
import type { Connection } from './connection.ts';
import { asRecord, isRecord, type JsonRecord, recordsAt, textAt, textsAt } from './json.ts';

/** Milliseconds without a byte; large changes and remote CAs take time. */
const SILENCE = 600_000;
/** Milliseconds to connect. */
const CONNECTING = 15_000;

export interface Query {
  readonly [parameter: string]: string | number | undefined;
}

interface Call {
  readonly query?: Query;
  readonly body?: JsonRecord;
  /** A body that is not JSON. */
  readonly rows?: { readonly type: string; readonly text: string };
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class AdminClient {
  readonly connection: Connection;
  readonly #agent: Agent;
  readonly #roles: readonly string[];

  /** @param roles any one suffices @throws UsageError for an unusable certificate, key or anchor */
  constructor(connection: Connection, roles: readonly string[]) {
    this.connection = connection;
    this.#roles = roles;
    this.#agent = new Agent({ keepAlive: true, secureContext: tlsContext(connection) });
  }

  /** The record in the response; empty for 204. @throws CommandError */
  async record(method: string, path: string, call: Call = {}): Promise<JsonRecord> {
    const answer = await this.open(method, path, call);
    if (answer.statusCode === 204) {
      answer.resume();
      return {};
    }
    return asRecord(await this.#read(answer)) ?? this.#strange(answer);
  }

  /** The response body as text. @throws CommandError */
  async text(method: string, path: string, call: Call = {}): Promise<string> {
    return this.#read(await this.open(method, path, call));
  }

  /** A successful response, before its body. @throws CommandError */
  async open(method: string, path: string, call: Call = {}): Promise<IncomingMessage> {
    const answer = await this.#send(method, path, call);
    const status = answer.statusCode ?? 0;
    if (status >= 200 && status < 300) return answer;
    const failure = asRecord(await this.#read(answer));
    const [code, message] = [textAt(failure, 'code'), textAt(failure, 'message')];
    if (code === '' || message === '') return this.#strange(answer);
    const caller = WHO.has(code) ? await this.#caller() : undefined;
    const advice =
      code === 'UNKNOWN_LABEL'
        ? '. "estuary admin ca list" shows the labels'
        : hint(status, { connection: this.connection, roles: this.#roles, caller });
    // A rejected configuration has a line for each problem.
    const lines = message.replace(/\.$/, '').split('\n').map(printable).join('\n');
    const exitCode = status === 503 || status === 429 ? EXIT.unavailable : EXIT.failed;
    throw new CommandError(`${lines} (${status} ${printable(code)})${advice}`, exitCode);
  }

  /** The lines of a response as they arrive. @throws CommandError */
  async *lines(answer: IncomingMessage): AsyncGenerator<string> {
    let rest = '';
    for await (const chunk of this.chunks(answer)) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
    if (rest !== '') yield rest;
  }

  /** @throws CommandError if it is incomplete */
  async *chunks(answer: IncomingMessage): AsyncGenerator<string> {
    answer.setEncoding('utf8');
    try {
      for await (const chunk of answer) yield String(chunk);
    } catch (error) {
      throw unreachable(error, this.connection);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #read(answer: IncomingMessage): Promise<string> {
    let text = '';
    for await (const chunk of this.chunks(answer)) text += chunk;
    return text;
  }

  /** @throws CommandError: the server is not the admin API */
  #strange({ statusCode = 0, headers: { 'content-type': type } }: IncomingMessage): never {
    const what = type === undefined ? 'no Content-Type' : printable(type);
    throw new CommandError(
      `${this.connection.origin} responded with ${statusCode}, ${what}, which is not the admin API. Check that this is the admin listener of Estuary.`,
    );
  }

  async #caller(): Promise<JsonRecord | undefined> {
    try {
      return asRecord(await this.#read(await this.#send('GET', '/admin/session', {})));
    } catch {
      return undefined;
    }
  }

  #send(
    method: string,
    path: string,
    { query = {}, body, rows, accept = 'application/json', headers: more = {} }: Call,
  ): Promise<IncomingMessage> {
    const { origin, token } = this.connection;
    const url = new URL(path, origin);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const { type, text } = rows ?? { type: 'application/json', text: body && JSON.stringify(body) };
    const headers = {
      ...more,
      accept,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(text === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
    };
    return new Promise((resolve, reject) => {
      const request = httpsRequest(url, { method, headers, agent: this.#agent });
      const fail = (error: unknown): void => reject(unreachable(error, this.connection));
      request.on('error', fail);
      request.on('response', (answer) => {
        answer.on('error', fail);
        resolve(answer);
      });
      limit(request);
      request.end(text);
    });
  }
}

function limit(request: ClientRequest): void {
  const end = (reason: string) => (): void => {
    request.destroy(Object.assign(new Error(reason), { code: 'ETIMEDOUT' }));
  };
  const timer = setTimeout(end('the connection timed out'), CONNECTING);
  const stop = (): void => clearTimeout(timer);
  request.on('socket', (socket) => {
    if (request.reusedSocket) stop();
    else socket.once('secureConnect', stop);
  });
  request.on('close', stop);
  request.setTimeout(SILENCE, end('no response in time'));
}

function tlsContext({ cert, key, ca, files }: Connection): SecureContext {
  try {
    return createSecureContext({
      ...(ca === undefined
        ? { ca: [...getCACertificates('default'), ...getCACertificates('system')] }
        : anchoredAt(ca)),
      cert,
      key,
    });
  } catch (error) {
    const isPair = codeOf(error) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH';
    const reason = isPair ? 'the key does not belong to the certificate' : describe(error);
    const what =
      cert === undefined
        ? `--ca: ${files.ca ?? 'the system trust store'}`
        : `--cert ${files.cert ?? ''} and --key ${files.key ?? ''}`;
    throw new UsageError(`${what} cannot be used: ${reason}`);
  }
}

interface Circumstances {
  readonly connection: Connection;
  /** Any one suffices; empty: any authenticated caller. */
  readonly roles: readonly string[];
  /** The caller's identity according to the server. */
  readonly caller: JsonRecord | undefined;
}

/** What the caller can do about a rejection. */
function hint(status: number, { connection, roles, caller }: Circumstances): string {
  const needed = roles.length === 0 ? '' : `. The call needs the role ${roles.join(' or ')}`;
  if (status === 401)
    return connection.credential === undefined
      ? `. Pass a token with --token-file, or a certificate with --cert and --key${needed}`
      : `: the server does not accept ${connection.credential}${needed}`;
  if (status !== 403 || caller === undefined) return '';
  const had = rolesInWords(caller);
  return `. You are "${printable(textAt(caller, 'subject'))}", ${had === '' ? 'without a role' : `with the role ${printable(had)}`}`;
}

/** Rejections that depend on the caller. */
const WHO: ReadonlySet<string> = new Set(['ROLE_MISSING', 'LABEL_NOT_PERMITTED']);

/** `ra for devices, lab; auditor` */
export function rolesInWords(caller: JsonRecord): string {
  const grants = recordsAt(caller, 'grants').map((grant) => {
    const labels = textsAt(grant, 'labels');
    return `${textsAt(grant, 'roles').join(', ')}${labels.length === 0 ? '' : ` for ${labels.join(', ')}`}`;
  });
  return grants.filter((text) => text !== '').join('; ');
}

/** Explains a missing or incomplete response. */
function unreachable(error: unknown, connection: Connection): CommandError {
  if (error instanceof CommandError) return error;
  // Several addresses of a name that all fail.
  const code = codeOf(error instanceof AggregateError ? error.errors[0] : error);
  const sentence = SENTENCES[code];
  if (sentence !== undefined) return new CommandError(`${connection.origin}: ${sentence}`, EXIT.unavailable);
  const distrust = trustSentence(code, error, connection);
  if (distrust !== undefined) return new CommandError(`${connection.origin}: ${distrust}`);
  const text = describe(error);
  return new CommandError(
    `${connection.origin}: ${printable(text.trim())}${code === '' ? '' : ` (${code})`}`,
    EXIT.unavailable,
  );
}

const SENTENCES: Readonly<Record<string, string | undefined>> = {
  ECONNREFUSED: 'connection refused. Check that the server runs and that this is the address of its admin listener.',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved now. Try again later.',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network of the host is unreachable',
  ETIMEDOUT: 'no response in time',
  ECONNRESET: 'the connection was closed before the response was complete. The server may have processed the call.',
  EPIPE: 'the connection was closed before the request was complete',
};

const UNTRUSTED = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'INVALID_CA',
];

/** The names of the certificate that Node.js rejected. */
function namesIn(error: unknown): string {
  const certificate = isRecord(error) && isRecord(error['cert']) ? error['cert'] : {};
  const names = certificate['subjectaltname'];
  return typeof names === 'string' && names !== '' ? names.replaceAll(/(?:DNS|IP Address):/g, '') : 'no host name';
}

function trustSentence(code: string, error: unknown, { files }: Connection): string | undefined {
  if (UNTRUSTED.includes(code)) {
    const anchors = files.ca ?? 'the system trust store';
    return `its certificate does not chain to ${anchors} (${code}). Pass the root of the server's certificate with --ca FILE.`;
  }
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired, or the clock of this machine is wrong';
  if (code === 'CERT_NOT_YET_VALID') return 'its certificate is not valid yet. Check the clock of this machine.';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `its certificate is for ${printable(namesIn(error))}. Use one of these names in --url.`;
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|CERTIFICATE_UNKNOWN|BAD_CERTIFICATE|UNKNOWN_CA/.test(code))
    return `it rejected the TLS handshake (${code}). Pass a client certificate with --cert and --key.`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return 'this port does not use TLS. Check that it is the admin listener.';
  return undefined;
}
