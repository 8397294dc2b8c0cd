/**
 * A request and its outcome on any listener: its ID (which the response contains), its log entry, its metrics. Covers
 * operations, Fastify's own errors, and those of Node's parser.
 */
import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { lockoutAddress } from '../auth/identity.ts';
import { CountedLines } from '../counted-repeats.ts';
import type { RequestLines } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { RequestContext } from '../request-context.ts';
import { cutText } from '../log.ts';
import { clientAddress, requestAddress } from './address.ts';

export const REQUEST_ID_HEADER = 'X-Request-Id';

type HttpListenerName = 'est' | 'admin' | 'publication';

interface ExchangesOptions {
  readonly listener: HttpListenerName;
  readonly lines: RequestLines;
  readonly metrics: RequestCounts;
}

export type RequestCounts = Pick<Metrics, 'countRequest' | 'countHandshakeFailure'>;

/** Maximum characters of client text in the log. */
const MAX_TEXT = 256;
const MAX_DETAIL = 4096;

/** One request; filled in as it proceeds. */
export class Exchange implements RequestContext {
  /** Time-ordered, so that the store's indexes grow at one end instead of changing a page per entry. */
  readonly requestId = randomUUIDv7();
  readonly address: string;
  /** EST's operation, or the route: from a fixed set, never client text. */
  operation: string | undefined;
  ca: string | undefined;
  requester: string | undefined;
  method: string | undefined;
  serial: string | undefined;
  code: string | undefined;
  /** For the log only, at most one line. */
  detail: string | undefined;
  /** For requests that reached no route. */
  url: string | undefined;
  /** Of a response that Node's response object does not know. */
  status: number | undefined;
  /** Set while the operation runs. The log entry of a client that is gone waits for its outcome. Never rejects. */
  atWork: Promise<void> | undefined;
  readonly #start = performance.now();

  constructor(address: string) {
    this.address = address;
  }

  get party(): string {
    if (this.requester === undefined) return `address ${lockoutAddress(this.address)}`;
    return `${this.method ?? ''} ${this.requester}`;
  }

  get ms(): number {
    return performance.now() - this.#start;
  }
}

const byRequest = new WeakMap<IncomingMessage, Exchange>();

interface Ongoing {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  answered: boolean;
}
/** The requests of a connection without a response, and the last one. */
const onConnection = new WeakMap<Duplex, Ongoing[]>();

/** The exchange of a request, created on first use. */
export function exchangeOf(request: IncomingMessage): Exchange {
  const known = byRequest.get(request);
  if (known !== undefined) return known;
  const exchange = new Exchange(requestAddress(request));
  byRequest.set(request, exchange);
  return exchange;
}

export class Exchanges {
  /** For unbounded log entries that anyone can cause. */
  readonly shared: CountedLines;
  readonly #options: ExchangesOptions;
  readonly #followed = new WeakSet<IncomingMessage>();

  /** Tracks every request of a server, before other listeners may respond. */
  constructor(server: Server, options: ExchangesOptions) {
    this.#options = options;
    this.shared = new CountedLines(options.lines);
    server.once('close', () => this.shared.close());
    const follow = (request: IncomingMessage, response: ServerResponse): void => void this.follow(request, response);
    for (const event of ['request', 'checkExpectation']) server.prependListener(event, follow);
  }

  /** Logs the request when the response is sent or the client is gone. */
  follow(request: IncomingMessage, response: ServerResponse): Exchange {
    const exchange = exchangeOf(request);
    if (this.#followed.has(request)) return exchange;
    this.#followed.add(request);
    const { socket } = request;
    const last = { request, response, answered: false };
    const others = onConnection.get(socket)?.filter(({ answered }) => !answered) ?? [];
    onConnection.set(socket, [...others, last]);
    const end = (): void => {
      response.off('finish', end).off('close', end);
      last.answered = true;
      const wasAnswered = response.headersSent && (request.complete || !socket.destroyed);
      const write = (): void => this.#end(exchange, exchange.status ?? (wasAnswered ? response.statusCode : undefined));
      if (wasAnswered || exchange.atWork === undefined) write();
      else void exchange.atWork.then(write);
    };
    response.once('finish', end).once('close', end);
    return exchange;
  }

  /** Whether further data on a connection belongs to a request that was already answered. */
  hasAnswered(socket: Duplex): boolean {
    const last = onConnection.get(socket)?.at(-1);
    return last?.response.headersSent === true && !last.request.complete;
  }

  /** The response that a connection must still carry, whatever follows the request; undefined: none. */
  due(socket: Duplex): ServerResponse | undefined {
    return onConnection.get(socket)?.findLast(({ request, answered }) => request.complete && !answered)?.response;
  }

  /**
   * Records what Node's parser rejected: the current request of the connection, or one that never started. Its log
   * entry may be aggregated, since anyone can cause these.
   */
  refused(socket: Duplex, status: number, code: string, detail: string | undefined): Exchange {
    const last = onConnection.get(socket)?.at(-1);
    const begun = last?.answered === false ? exchangeOf(last.request) : undefined;
    const exchange = begun ?? new Exchange(clientAddress(socket));
    Object.assign(exchange, { status, code, detail });
    if (begun === undefined) {
      this.#options.metrics.countRequest(this.#options.listener, exchange, status);
      this.shared.info(`${code} ${exchange.address}`, this.#line(exchange, status), 'request');
    }
    return exchange;
  }

  /** A connection that never became secure. */
  handshakeFailed(address: string, detail: string): void {
    const { listener, metrics } = this.#options;
    metrics.countHandshakeFailure(listener);
    this.shared.info(`handshake ${address}`, { listener, address, detail }, 'TLS handshake failed');
  }

  #end(exchange: Exchange, status: number | undefined): void {
    const { listener, lines, metrics } = this.#options;
    metrics.countRequest(listener, exchange, status);
    const line = this.#line(exchange, status);
    // A flood of requests must not flood the log.
    if (exchange.code === 'RATE_LIMITED' || exchange.code === 'OVERLOADED')
      this.shared.info(`${exchange.code} ${exchange.address}`, line, 'request');
    else lines[levelOf(status)](line, 'request');
  }

  /** Every entry has every field, so that a log can be read by column; missing values are null. */
  #line(exchange: Exchange, status: number | undefined): object {
    const { requestId, address, operation, ca, requester, method, code, serial, detail, url } = exchange;
    return {
      listener: this.#options.listener,
      request_id: requestId,
      address,
      operation: operation ?? null,
      ca: ca ?? null,
      requester: requester === undefined ? null : cutText(requester, MAX_TEXT),
      method: method ?? null,
      // null: the connection ended without a response.
      status: status ?? null,
      code: code ?? null,
      serial: serial ?? null,
      ms: Math.round(exchange.ms),
      ...(detail === undefined ? {} : { detail: cutText(detail, MAX_DETAIL) }),
      ...(url === undefined ? {} : { url: cutText(url, MAX_TEXT) }),
    };
  }
}

/** 503 is temporary; any other 5xx is our failure. */
function levelOf(status: number | undefined): keyof RequestLines {
  if (status === undefined || status < 500 || status === 501) return 'info';
  return status === 503 ? 'warn' : 'error';
}
