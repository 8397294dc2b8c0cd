/** One HTTPS call to an identity provider, on a new connection, bounded in time and size. */
import { type HttpAnswer, type HttpCall, HttpClient, TransportError } from '../https-client.ts';

interface HttpsCall extends Partial<Pick<HttpCall, 'method' | 'headers' | 'body'>> {
  /** PEM: CAs for the server's certificate; undefined: those of Node.js. */
  readonly ca: string | undefined;
}

/** Milliseconds. */
const TIMEOUT = 5000;
/** Octets. */
const MAX_ANSWER = 256 << 10;

/** @throws TransportError, also if the server reports an internal error */
export async function httpsCall(url: string, { method = 'GET', ca, ...call }: HttpsCall): Promise<HttpAnswer> {
  const { origin, pathname, search } = new URL(url);
  const client = new HttpClient(origin, ca === undefined ? {} : { ca }, { maxAnswer: MAX_ANSWER });
  const answer = await client.call({
    ...call,
    method,
    path: pathname + search,
    deadline: Date.now() + TIMEOUT,
    freshConnection: true,
  });
  if (answer.status >= 500) throw new TransportError(`${url} responded with status ${answer.status}`, true);
  return answer;
}
