/** Tries several servers in order. */
import { ClientError, type ClientErrorCode } from './client-error.ts';
import type { ClientContext } from './context.ts';

/** Errors after which another server may succeed. */
const SERVER_ERRORS: ReadonlySet<ClientErrorCode> = new Set([
  'PROXY_FAILED',
  'SERVER_UNAVAILABLE',
  'SERVER_UNREACHABLE',
  'SERVER_UNTRUSTED',
]);

/** @throws ClientError of the last server */
export async function atFirstServer<T>(
  urls: readonly string[],
  { log }: Pick<ClientContext, 'log'>,
  certificate: string,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const [url = '', ...others] = urls;
  const [next] = others;
  try {
    return await work(url);
  } catch (error) {
    if (next === undefined || !(error instanceof ClientError) || !concernsServer(error)) throw error;
    log('warning', certificate, `${error.message}; trying ${next}`);
  }
  return atFirstServer(others, { log }, certificate, work);
}

/** Whether another server may succeed; 429 limits the client at every server. */
const concernsServer = ({ code, status }: ClientError): boolean => SERVER_ERRORS.has(code) && status !== 429;
