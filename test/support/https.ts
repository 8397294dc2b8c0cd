/** Requests against a server under test: a plain client, and a raw one for what no client would send. */
import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

export interface ClientTls {
  /** PEM of the CA that the server certificate chains to. */
  readonly ca: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly ciphers?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As on the wire, names in their case. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
}

export interface Call {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly tls: ClientTls;
  readonly port: number;
  readonly agent?: Agent;
  /** Leave out Content-Length and send chunks. */
  readonly chunked?: boolean;
}

/** One HTTPS request to the loopback; 60 s at most. */
export function call(options: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const body = typeof options.body === 'string' ? Buffer.from(options.body, 'latin1') : options.body;
    const request = httpsRequest(
      {
        host: '127.0.0.1',
        servername: 'localhost',
        port: options.port,
        method: options.method ?? 'GET',
        path: options.path,
        headers: {
          ...(body === undefined || options.chunked === true ? {} : { 'Content-Length': body.length }),
          ...options.headers,
        },
        agent: options.agent ?? new Agent({ keepAlive: false }),
        signal: AbortSignal.timeout(60_000),
        ...options.tls,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            rawHeaders: response.rawHeaders,
            body: bytes,
            text: bytes.toString('utf8'),
          });
        });
      },
    );
    request.on('error', reject);
    if (body !== undefined) request.write(body);
    request.end();
  });
}

/** Opens a TLS connection to the loopback. A server that resets it only closes it, unless the caller listens for errors. */
export function openTls(port: number, tls: ClientTls, more: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', servername: 'localhost', port, ...tls, ...more }, () => {
      socket.off('error', reject).on('error', () => undefined);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

/** Sends bytes as they are and returns all that comes back until the server closes, or `idle` ms pass in silence. */
export async function sendRaw(port: number, tls: ClientTls, bytes: string | Buffer, idle = 60_000): Promise<string> {
  const socket = await openTls(port, tls);
  return new Promise((resolve) => {
    let text = '';
    const finish = (): void => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(idle, finish);
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', finish);
    socket.on('close', finish);
    socket.write(bytes);
  });
}
