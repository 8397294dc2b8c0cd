/** One HTTPS call to one server of a remote CA: bounded in time and size, and exact about whether the request can have arrived. */
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { ServiceMaterial } from '../../config/material/material.ts';
import { pemOf } from '../../pki/x509/certificate.ts';

/** The TLS settings of every connection to a remote CA. */
export interface ClientTls {
  /** PEM: the CAs that the server's TLS certificate chains to; absent: those that Node.js knows. */
  readonly ca?: string;
  /** PEM: our certificate, and its key. */
  readonly cert?: string;
  readonly key?: string;
}

/** The TLS settings of a part of the configuration that names anchors and a client certificate. */
export const clientTls = ({ trustAnchors, client }: Partial<ServiceMaterial>): ClientTls => ({
  ...(trustAnchors === undefined ? {} : { ca: pemOf(trustAnchors) }),
  ...(client === undefined
    ? {}
    : { cert: pemOf(client.certificates), key: client.privateKey.export({ type: 'pkcs8', format: 'pem' }) }),
});

export interface HttpCall {
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** Begins with `/`, or is empty; below the server's URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Milliseconds since the epoch at which the whole answer has to be there. */
  readonly deadline: number;
  /** The same for the TLS handshake; the deadline, unless given. */
  readonly connectDeadline?: number;
  /** On a connection of its own, so that a connection that the server has just given up cannot lose the request. */
  readonly freshConnection?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** No whole answer came. */
export class TransportError extends Error {
  /** False: not a byte of the request was handed on, or the TLS handshake was refused. It certainly did not arrive. */
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = 'TransportError';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** The longest answers are lists and pages of pretty-printed certificates: some hundred kilobytes. */
const MAX_ANSWER = 4 << 20;
/** Milliseconds that an unused connection is kept; Tomcat closes it after 20 s or more. */
const KEEP_ALIVE = 10_000;

/** One server of a remote CA. */
export class HttpClient {
  /** Without a path or a final slash. */
  readonly url: string;
  readonly #base: URL;
  readonly #tls: ClientTls;
  readonly #agent: Agent;

  constructor(url: string, tls: ClientTls) {
    this.#base = new URL(url);
    this.url = this.#base.origin;
    this.#tls = tls;
    this.#agent = new Agent({ keepAlive: true, timeout: KEEP_ALIVE, maxSockets: 64, ...tls });
  }

  /** @throws TransportError */
  call(options: HttpCall): Promise<HttpAnswer> {
    const { method, path, headers = {}, body, deadline, freshConnection = false } = options;
    return new Promise((resolve, reject) => {
      let handedOn = false;
      const limit = (at: number, what: string): NodeJS.Timeout =>
        setTimeout(() => request.destroy(new Error(`${this.url} ${what} in time`)), Math.max(0, at - Date.now()));
      const request = httpsRequest({
        host: this.#base.hostname.replace(/^\[|\]$/g, ''),
        port: this.#base.port === '' ? 443 : Number(this.#base.port),
        method,
        path: `${this.#base.pathname.replace(/\/$/, '')}${path}`,
        headers: { ...headers, ...(body === undefined ? {} : { 'Content-Length': body.length }) },
        ...(freshConnection ? { agent: false, ...this.#tls } : { agent: this.#agent }),
      });
      const answered = limit(deadline, 'did not answer');
      const connected = limit(options.connectDeadline ?? deadline, 'could not be connected to');
      const fail = (error: Error): void => {
        clearTimeout(answered);
        clearTimeout(connected);
        reject(new TransportError(error.message, handedOn && !isHandshakeRefusal(error), error));
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
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          if (size > MAX_ANSWER) request.destroy(new Error(`${this.url} answered with more than ${MAX_ANSWER} bytes`));
        });
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(answered);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** With TLS 1.3 the server refuses a client certificate after our handshake is over; the request is not read then. */
function isHandshakeRefusal(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && /^ERR_SSL_.*ALERT/.test(error.code);
}
