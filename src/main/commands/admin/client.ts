/** Calls of the admin API: TLS with the server's name checked, whatever becomes of it told in a sentence that somebody can act on. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { UsageError } from '../command.ts';
import type { Connection } from './connection.ts';
import { notTheApi, readFailure, refusal, unreachable } from './failures.ts';
import { asRecord, type JsonRecord } from './json.ts';

/** Milliseconds without a byte. A call that does much at once, or asks a CA elsewhere, may take its time. */
const SILENCE = 600_000;
/** Milliseconds until a connection stands. */
const CONNECTING = 15_000;

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface Query {
  readonly [parameter: string]: string | number | undefined;
}

export interface Call {
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

  /**
   * @param roles one of which the calls need
   * @throws UsageError: the certificate, the key or the anchors cannot be used
   */
  constructor(connection: Connection, roles: readonly string[]) {
    this.connection = connection;
    this.#roles = roles;
    this.#agent = new Agent({ keepAlive: true, secureContext: tlsContext(connection) });
  }

  /** The record that a call answers with; an empty one for 204. @throws CommandError */
  async record(method: Method, path: string, call: Call = {}): Promise<JsonRecord> {
    const answer = await this.open(method, path, call);
    if (answer.statusCode === 204) {
      answer.resume();
      return {};
    }
    return asRecord(await this.#read(answer)) ?? this.#strange(answer);
  }

  /** Whatever it is that a call answers with. @throws CommandError */
  async text(method: Method, path: string, call: Call = {}): Promise<string> {
    return this.#read(await this.open(method, path, call));
  }

  /** An answer that has begun well. @throws CommandError */
  async open(method: Method, path: string, call: Call = {}): Promise<IncomingMessage> {
    const answer = await this.#send(method, path, call);
    const status = answer.statusCode ?? 0;
    if (status >= 200 && status < 300) return answer;
    const failure = readFailure(await this.#read(answer));
    if (failure === undefined) return this.#strange(answer);
    const caller = failure.code === 'ROLE_MISSING' ? await this.#caller() : undefined;
    throw refusal(status, failure, { connection: this.connection, roles: this.#roles, caller });
  }

  /** The lines of an answer, as they come. @throws CommandError */
  async *lines(answer: IncomingMessage): AsyncGenerator<string> {
    let rest = '';
    for await (const chunk of this.chunks(answer)) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
    if (rest !== '') yield rest;
  }

  /** @throws CommandError: it ends before it is whole */
  async *chunks(answer: IncomingMessage): AsyncGenerator<string> {
    answer.setEncoding('utf8');
    try {
      for await (const chunk of answer) yield String(chunk);
    } catch (error) {
      throw unreachable(error, this.connection);
    }
  }

  /** Takes no more calls, and lets the process end. */
  close(): void {
    this.#agent.destroy();
  }

  async #read(answer: IncomingMessage): Promise<string> {
    let text = '';
    for await (const chunk of this.chunks(answer)) text += chunk;
    return text;
  }

  /** @throws CommandError: what answers is no admin API */
  #strange({ statusCode = 0, headers }: IncomingMessage): never {
    throw notTheApi(statusCode, headers['content-type'], this.connection);
  }

  async #caller(): Promise<JsonRecord | undefined> {
    try {
      return asRecord(await this.#read(await this.#send('GET', '/admin/session', {})));
    } catch {
      return undefined;
    }
  }

  #send(
    method: Method,
    path: string,
    { query = {}, body, rows, accept = 'application/json', headers: more = {} }: Call,
  ): Promise<IncomingMessage> {
    const { origin, token } = this.connection;
    const url = new URL(path, origin);
    for (const [name, one] of Object.entries(query)) if (one !== undefined) url.searchParams.set(name, String(one));
    const { type, text } = rows ?? {
      type: 'application/json',
      text: body === undefined ? undefined : JSON.stringify(body),
    };
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
  const timer = setTimeout(
    () => request.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })),
    CONNECTING,
  );
  const stop = (): void => clearTimeout(timer);
  request.on('socket', (socket) => {
    if (request.reusedSocket) stop();
    else socket.once('secureConnect', stop);
  });
  request.on('close', stop);
  request.setTimeout(SILENCE, () =>
    request.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })),
  );
}

function tlsContext({ cert, key, ca, files }: Connection): SecureContext {
  try {
    return createSecureContext({
      ca: ca ?? [...getCACertificates('default'), ...getCACertificates('system')],
      cert,
      key,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const what =
      cert === undefined
        ? `--ca: ${files.ca ?? 'what this machine trusts'}`
        : `--cert ${files.cert ?? ''} and --key ${files.key ?? ''}`;
    throw new UsageError(`${what} cannot be used: ${reason}`);
  }
}
