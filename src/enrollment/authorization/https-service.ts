/** The connection to the service that decides: verified TLS, kept alive, no redirects, bounded in time and size. */
import { Agent, request as httpsRequest } from 'node:https';

export interface ServiceTls {
  /** PEM: whom the service's certificate chains to; undefined: the CAs that Node.js knows. */
  readonly ca: string | undefined;
  /** PEM: our certificate, and its key. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** No answer that counts; the message is for the log. */
export class ServiceError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ServiceError';
  }
}

/** Octets. */
const MAX_ANSWER = 64 << 10;
/** Milliseconds that an unused connection is kept: servers close theirs after five seconds or more. */
const KEEP_ALIVE = 4000;

export class HttpsService {
  readonly #url: URL;
  readonly #agent: Agent;
  readonly #token: string | undefined;

  /** @param connections at most, at a time */
  constructor(url: string, { ca, cert, key }: ServiceTls, token: string | undefined, connections: number) {
    this.#url = new URL(url);
    this.#token = token;
    this.#agent = new Agent({
      keepAlive: true,
      timeout: KEEP_ALIVE,
      maxSockets: connections,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  }

  /**
   * One POST, sent once.
   *
   * @param timeout milliseconds until the whole answer is there
   * @returns the body of a 200
   * @throws ServiceError
   */
  post(json: string, timeout: number): Promise<Buffer> {
    const body = Buffer.from(json, 'utf8');
    return new Promise((resolve, reject) => {
      const request = httpsRequest(this.#url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': body.length,
          Accept: 'application/json',
          ...(this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }),
        },
      });
      const late = setTimeout(() => request.destroy(new Error('no answer in time')), Math.max(0, timeout));
      const fail = (error: Error): void => {
        clearTimeout(late);
        reject(new ServiceError(error.message, error));
      };
      request.on('error', fail);
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        if (response.statusCode !== 200) request.destroy(new Error(`answered with status ${response.statusCode}`));
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          if (size > MAX_ANSWER) request.destroy(new Error(`answered with more than ${MAX_ANSWER} bytes`));
        });
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(late);
          resolve(Buffer.concat(chunks));
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
