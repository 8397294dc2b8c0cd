/**
 * Calls one HTTPS server, without redirects, bounded in time and size. Reports whether the request may have arrived.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { type SecureContext, type SecureVersion, TLSSocket } from 'node:tls';
import { codeOf } from './errors.ts';
import { ProxiedAgent } from './outgoing-proxy.ts';

/** TLS settings for connections to another server. */
export interface ClientTls {
  /** PEM: CAs for the server's certificate; default: those of Node.js. */
  readonly ca?: string;
  /** PEM: our certificate and its key. */
  readonly cert?: string;
  readonly key?: string;
  /** In place of the three. */
  readonly secureContext?: SecureContext;
  readonly maxVersion?: SecureVersion;
}

export interface HttpCall {
  readonly method: string;
  /** Empty or begins with `/`; relative to the server's URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Deadline for the complete response. */
  readonly deadline: number;
  /** Deadline for the TLS handshake; default: `deadline`. */
  readonly connectDeadline?: number;
  /** Uses a new connection, so that one that the server is closing cannot lose the request. */
  readonly freshConnection?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Whether the server asked for our certificate, in this connection or in one that it resumes. */
  readonly certificateRequested?: boolean;
}

/** No complete response. */
export class TransportError extends Error {
  /** False: no byte was sent, or the TLS handshake failed. The request certainly did not arrive. */
  readonly mayHaveArrived: boolean;
  /** The server answered, with more than the limit. */
  readonly isTooLong: boolean;

  constructor(message: string, mayHaveArrived: boolean, { cause, isTooLong = false }: TransportErrorOptions = {}) {
    super(message, { cause });
    this.name = 'TransportError';
    this.mayHaveArrived = mayHaveArrived;
    this.isTooLong = isTooLong;
  }
}

interface TransportErrorOptions {
  readonly cause?: unknown;
  readonly isTooLong?: boolean;
}

interface HttpLimits {
  /** Default: 4 MiB. The longest responses are lists and pages of pretty-printed certificates, some hundred kilobytes. */
  readonly maxAnswer?: number;
  /** Milliseconds to keep an idle connection. Default: 10 s; Tomcat closes it after 20 s or more. */
  readonly keepAlive?: number;
  /** Default: 64. */
  readonly maxConnections?: number;
}

export interface HttpCaller {
  /** No call can be made before a reload. */
  readonly hasGivenUp?: boolean;
  /** Before the first call. @throws Error that says why no call can be made */
  start?(): Promise<void>;
  /** @throws TransportError */
  call(options: HttpCall): Promise<HttpAnswer>;
  close(): void;
}

/** TLS options for configured CAs. RFC 5280 §6.1.1: an anchor need not be self-signed. @param ca undefined: those of Node.js */
export const anchoredAt = <T>(ca: T | undefined) => (ca === undefined ? {} : { ca, allowPartialTrustChain: true });

export class HttpClient implements HttpCaller {
  /** Without a path or a trailing slash. */
  readonly url: string;
  readonly #base: URL;
  readonly #tls: ClientTls & { readonly rejectUnauthorized: true };
  readonly #agent: Agent;
  readonly #maxAnswer: number;

  constructor(url: string, tls: ClientTls, limits: HttpLimits = {}) {
    const { maxAnswer = 4 << 20, keepAlive: timeout = 10_000, maxConnections: maxSockets = 64 } = limits;
    this.#base = new URL(url);
    this.url = this.#base.origin;
    // Regardless of NODE_TLS_REJECT_UNAUTHORIZED.
    this.#tls = { ...tls, rejectUnauthorized: true, ...anchoredAt(tls.ca) };
    this.#agent = new ProxiedAgent(this.#base, this.#tls, { keepAlive: true, timeout, maxSockets });
    this.#maxAnswer = maxAnswer;
  }

  call(options: HttpCall): Promise<HttpAnswer> {
    const { method, path, headers = {}, body, deadline, freshConnection = false } = options;
    return new Promise((resolve, reject) => {
      let [handedOn, isTooLong] = [false, false];
      const limit = (at: number, what: string): NodeJS.Timeout =>
        setTimeout(() => request.destroy(new Error(`${this.url} ${what} in time`)), Math.max(0, at - Date.now()));
      const request = httpsRequest({
        host: this.#base.hostname.replace(/^\[|\]$/g, ''),
        port: this.#base.port === '' ? 443 : Number(this.#base.port),
        method,
        path: `${this.#base.pathname.replace(/\/$/, '')}${path}`,
        headers: { ...headers, ...(body === undefined ? {} : { 'Content-Length': body.length }) },
        agent: freshConnection ? new ProxiedAgent(this.#base, this.#tls) : this.#agent,
      });
      const answered = limit(deadline, 'did not answer');
      const connected = limit(options.connectDeadline ?? deadline, 'could not be connected to');
      const fail = (error: Error): void => {
        clearTimeout(answered);
        clearTimeout(connected);
        reject(new TransportError(error.message, handedOn && !isHandshakeRefusal(error), { cause: error, isTooLong }));
      };
      const connect = (): void => {
        handedOn = true;
        clearTimeout(connected);
      };
      request.on('socket', (socket: Socket) => {
        if (request.reusedSocket) connect();
        else socket.once('secureConnect', connect);
      });
      request.on('error', fail);
      request.on('response', (response) => {
        const certificateRequested = hasRequestedCertificate(response.socket);
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          isTooLong = size > this.#maxAnswer;
          if (isTooLong) request.destroy(new Error(`${this.url} responded with more than ${this.#maxAnswer} bytes`));
        });
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(answered);
          const { statusCode: status = 0, headers: received } = response;
          resolve({ status, headers: received, body: Buffer.concat(chunks), certificateRequested });
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** A request for a certificate names the algorithms of its signature, also after the handshake (RFC 5246 §7.4.4). */
const hasRequestedCertificate = (socket: Socket): boolean =>
  socket instanceof TLSSocket && (socket.isSessionReused() || socket.getSharedSigalgs().length > 0);

/** With TLS 1.3 the server rejects a client certificate after our handshake; it has not read the request then. */
const isHandshakeRefusal = (error: Error): boolean => /^ERR_SSL_.*ALERT/.test(codeOf(error));
