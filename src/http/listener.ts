/** What every listener does alike: time limits, rate limits, HTTP rules. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Config } from '../config/schema.ts';
import { limitRequests } from './admission.ts';
import { closeGently } from './closing.ts';
import { exchangeOf } from './exchange.ts';
import { applyHttpRules, type Refuse } from './request-head.ts';

type Timeouts = 'headers_timeout' | 'request_timeout' | 'keep_alive_timeout';

export interface ListenerConfig {
  readonly server: Pick<Config['server'], Timeouts>;
  readonly limits: Config['limits'];
  readonly est: Pick<Config['est'], 'retry_after'>;
}

/** Options of Node's server. */
export const connectionOptions = ({ server }: Pick<ListenerConfig, 'server'>) => ({
  // Node's own response to a missing Host has no body.
  requireHostHeader: false,
  connectionsCheckingInterval: checkingInterval(server.headers_timeout * 1000),
});

/** Options of Fastify. */
export const requestOptions = ({ server }: Pick<ListenerConfig, 'server'>) => ({
  requestTimeout: server.request_timeout * 1000,
  keepAliveTimeout: server.keep_alive_timeout * 1000,
  forceCloseConnections: 'idle' as const,
  // A request in progress is still answered while the process stops.
  return503OnClosing: false,
  genReqId: (raw: IncomingMessage) => exchangeOf(raw).requestId,
});

/** Call it after the server's other `request` listeners exist. @param refuse responds in the listener's form */
export function limitListener(
  server: Server,
  { server: { headers_timeout, request_timeout }, limits, est }: ListenerConfig,
  refuse: Refuse,
): void {
  server.headersTimeout = headers_timeout * 1000;
  limitRequests(server, limits, refuse);
  applyHttpRules(server, est.retry_after, refuse);
  boundAnswers(server, request_timeout * 1000);
  closeGently(server);
}

/** Milliseconds between Node's checks for slow requests; its default of 30 s is longer than most limits. */
export const checkingInterval = (headersTimeout: number): number => Math.min(headersTimeout, 5000);

/** Minimum octets per second for reading a long response. */
const SLOWEST = 16 * 1024;

/**
 * Disconnects a client that does not read its response. Data in kernel buffers counts as read.
 * @param timeout milliseconds for a short response
 * @param slowest additional time: octets per second
 */
export function boundAnswers(server: Server, timeout: number, slowest = SLOWEST): void {
  // Before listeners that may respond at once.
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    response.once('prefinish', () => {
      const { socket } = response;
      if (socket === null) return;
      const cut = setTimeout(() => socket.destroy(), timeout + (socket.writableLength / slowest) * 1000);
      // With the listeners of Fastify's streams, a file has eleven, and Node would warn of a leak.
      response.setMaxListeners(20).once('close', () => clearTimeout(cut));
    });
  });
}
