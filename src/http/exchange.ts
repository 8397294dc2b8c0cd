/**
 * A request and what becomes of it, on any listener: its id, which its answer carries, its line of log, and its place in the metrics
 *. Whatever answers goes by here: the operations, Fastify's own refusals, and those of Node's parser.
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

/** Where requests are counted. */
export type RequestCounts = Pick<Metrics, 'countRequest' | 'countHandshakeFailure'>;

/** Characters of a text that came from a client, in the log. */
const MAX_TEXT = 256;
const MAX_DETAIL = 4096;

/** One request; filled in as it goes. */
export class Exchange implements RequestContext {
  /** Of the time, so that the store's indexes of it grow at one end: what comes in between changes a page for each. */
  readonly requestId = randomUUIDv7();
  readonly address: string;
  /** EST's operation, or the route: one of a fixed few, never what a client made up. */
  operation: string | undefined;
  ca: string | undefined;
  requester: string | undefined;
  method: string | undefined;
  serial: string | undefined;
  code: string | undefined;
  /** For the log only, and no more than one line of it. */
  detail: string | undefined;
  /** Where nothing came to be routed. */
  url: string | undefined;
  /** Of an answer that Node's response knows nothing of. */
  status: number | undefined;
  /** While the operation is at work. The line of a client that has gone waits for what comes of it. Never rejects. */
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
/** The last request on a connection. */
const onConnection = new WeakMap<Duplex, { readonly request: IncomingMessage; answered: boolean }>();

/** The exchange of a request; begun where it has none. */
export function exchangeOf(request: IncomingMessage): Exchange {
  const known = byRequest.get(request);
  if (known !== undefined) return known;
  const exchange = new Exchange(requestAddress(request));
  byRequest.set(request, exchange);
  return exchange;
}

export class Exchanges {
  /** For lines that anybody can cause without end. */
  readonly shared: CountedLines;
  readonly #options: ExchangesOptions;
  readonly #followed = new WeakSet<IncomingMessage>();

  /** Follows every request of a server, before whatever may answer it. */
  constructor(server: Server, options: ExchangesOptions) {
    this.#options = options;
    this.shared = new CountedLines(options.lines);
    server.once('close', () => this.shared.close());
    const follow = (request: IncomingMessage, response: ServerResponse): void => void this.follow(request, response);
    for (const event of ['request', 'checkExpectation']) server.prependListener(event, follow);
  }

  /** Writes the line of log when the answer is sent, or nobody is there any more to take it. */
  follow(request: IncomingMessage, response: ServerResponse): Exchange {
    const exchange = exchangeOf(request);
    if (this.#followed.has(request)) return exchange;
    this.#followed.add(request);
    const { socket } = request;
    const last = { request, answered: false };
    onConnection.set(socket, last);
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

  /** Whether what is still to come on a connection is the rest of a request that has its answer. */
  hasAnswered(socket: Duplex): boolean {
    const last = onConnection.get(socket);
    return last?.answered === true && !last.request.complete;
  }

  /**
   * What Node's parser refused: the request that has begun on the connection, or one that never came to be. Its line of log may be
   * shared: whoever sends nonsense without end does not fill the log.
   */
  refused(socket: Duplex, status: number, code: string, detail: string | undefined): Exchange {
    const last = onConnection.get(socket);
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
    // Whoever floods the listener does not flood the log.
    if (exchange.code === 'RATE_LIMITED' || exchange.code === 'OVERLOADED')
      this.shared.info(`${exchange.code} ${exchange.address}`, line, 'request');
    else lines[levelOf(status)](line, 'request');
  }

  /** Every line has every field, so that a log can be read by column; what there is nothing of is null. */
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
      // null: the connection ended before there was an answer.
      status: status ?? null,
      code: code ?? null,
      serial: serial ?? null,
      ms: Math.round(exchange.ms),
      ...(detail === undefined ? {} : { detail: cutText(detail, MAX_DETAIL) }),
      ...(url === undefined ? {} : { url: cutText(url, MAX_TEXT) }),
    };
  }
}

/** 503 passes by itself, any other failure is ours. */
function levelOf(status: number | undefined): keyof RequestLines {
  if (status === undefined || status < 500 || status === 501) return 'info';
  return status === 503 ? 'warn' : 'error';
}
