/** {@link proxyFor} and {@link openTunnel} with errors of the client. */
import type { Duplex } from 'node:stream';
import { openTunnel as tunnelTo, type Proxy, ProxyError, proxyFor as proxyOf } from '../../outgoing-proxy.ts';
import { ClientError } from '../client-error.ts';

/** @throws ClientError `PROXY_FAILED` */
export function proxyFor(...args: Parameters<typeof proxyOf>): Proxy | undefined {
  try {
    return proxyOf(...args);
  } catch (error) {
    throw toClientError(error);
  }
}

/** @throws ClientError `PROXY_FAILED` */
export const openTunnel = (...args: Parameters<typeof tunnelTo>): Promise<Duplex> =>
  tunnelTo(...args).catch((error: unknown) => {
    throw toClientError(error);
  });

const toClientError = (error: unknown): unknown =>
  error instanceof ProxyError
    ? new ClientError(error.permanent ? 'local' : 'later', 'PROXY_FAILED', error.message, { cause: error.cause })
    : error;
