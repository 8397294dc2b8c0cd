/** One HTTPS call to an identity provider: on a new connection, without redirects, bounded in time and size. */
import type { IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { ProxiedAgent } from '../outgoing-proxy.ts';

interface HttpsCall {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** PEM: CAs for the server's certificate; undefined: those of Node.js. */
  readonly ca: string | undefined;
}

export interface HttpsAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Milliseconds. */
const TIMEOUT = 5000;
/** Octets. */
const MAX_ANSWER = 256 << 10;

/** The server did not answer, or reported an internal error. */
export class UnreachableError extends Error {}

/** @throws UnreachableError */
export function httpsCall(url: string, { method = 'GET', headers = {}, body, ca }: HttpsCall): Promise<HttpsAnswer> {
  return new Promise((resolve, reject) => {
    const tls = { minVersion: 'TLSv1.2', rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) } as const;
    const agent = new ProxiedAgent(new URL(url), tls);
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const request = httpsRequest(url, { method, agent, headers: { ...headers, ...length } });
    const late = setTimeout(() => request.destroy(new Error(`${url} did not respond in time`)), TIMEOUT);
    const fail = (error: Error): void => {
      clearTimeout(late);
      reject(new UnreachableError(error.message, { cause: error }));
    };
    request.on('error', fail);
    request.on('response', (response) => {
      const { statusCode: status = 0 } = response;
      const chunks: Buffer[] = [];
      let size = 0;
      if (status >= 500) request.destroy(new Error(`${url} responded with status ${status}`));
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size > MAX_ANSWER) request.destroy(new Error(`${url} responded with more than ${MAX_ANSWER} bytes`));
      });
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(late);
        resolve({ status, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
    request.end(body);
  });
}
