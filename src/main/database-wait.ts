/** The start while the database does not answer: the server waits, is alive and not ready (docs/guides/faults.md). */
import { createServer } from 'node:https';
import type { RequestListener } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KeyPair, Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { EstuaryError } from '../errors.ts';
import { connectionOptions } from '../http/listener.ts';
import { TicketSecret } from '../http/ticket-secret.ts';
import { TlsEnd, tlsMaterial } from '../http/tls.ts';
import type { Logger } from '../log.ts';
import { isRefusedLogin } from '../store/postgres/errors.ts';
import { bindAll, type Binding, Listener, listenerContext, proxies } from './listener.ts';

/** Milliseconds between attempts, at first and at most. */
const [FIRST_PAUSE, LAST_PAUSE] = [500, 5000];

export interface WaitOptions {
  readonly config: Config;
  readonly material: Material;
  readonly log: Logger;
  /** Ends the wait. */
  readonly stopping?: AbortSignal | undefined;
  /** Called before each pause. */
  readonly onWait?: (() => void) | undefined;
}

/**
 * Repeats the attempt to join the nodes of a database until the database answers.
 * @returns the result, and what closes the listeners of the wait, as late as possible
 * @throws what the attempt throws, unless no database answers
 */
export async function whenDatabaseAnswers<T>(
  attempt: () => Promise<T>,
  options: WaitOptions,
): Promise<{ readonly joined: T; readonly endWait: () => Promise<void> }> {
  const { config, log, stopping, onWait } = options;
  let listeners: readonly Listener[] | undefined;
  let last: string | undefined;
  const endWait = async (): Promise<void> => {
    const open = listeners ?? [];
    listeners = [];
    await Promise.all(open.map((listener) => listener.close(0)));
  };
  try {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
      try {
        const joined = await attempt();
        if (last !== undefined) log.info('the database answers');
        return { joined, endWait };
      } catch (error) {
        const isAbsent = error instanceof EstuaryError && error.code === 'STORE_UNAVAILABLE' && !isRefusedLogin(error);
        if (config.store.driver === 'sqlite' || !isAbsent) throw error;
        const { detail = error.message } = error;
        if (detail !== last) log.warn({ detail }, 'the server waits for its database, which does not answer');
        last = detail;
      }
      listeners ??= await openListeners(options);
      onWait?.();
      await sleep(pause, undefined, { signal: stopping });
    }
  } catch (error) {
    await endWait();
    throw error;
  }
}

/** None without a certificate, which a CA of the service would issue. */
async function openListeners({ config, material, log }: WaitOptions): Promise<readonly Listener[]> {
  const { est, admin, server } = config;
  const context = listenerContext(config, log);
  const listener = (name: 'est' | 'admin', pair: KeyPair | undefined, binding: Binding, handle: RequestListener) =>
    pair &&
    new Listener(
      name,
      binding,
      appOf(name, config, pair, handle),
      context,
      name === 'est' ? proxies(config) : undefined,
    );
  const retry = { 'Retry-After': String(est.retry_after) };
  const open = [
    listener('est', material.tls, { ...est, reusePort: server.reuse_port }, (_, response) => {
      response.writeHead(503, { ...retry, 'Content-Type': 'text/plain; charset=utf-8' });
      response.end('The server waits for its database. Try again later.\n');
    }),
    listener('admin', material.adminTls, admin, ({ method, url }, response) => {
      const isAlive = method === 'GET' && url?.split('?')[0] === '/healthz';
      response.writeHead(isAlive ? 200 : 503, { ...(isAlive ? {} : retry), 'Content-Type': 'application/json' });
      response.end(JSON.stringify(isAlive ? { status: 'ok' } : NOT_READY));
    }),
  ].filter((made) => made !== undefined);
  await bindAll(open);
  for (const bound of open) bound.open();
  return open;
}

const NOT_READY = {
  statusCode: 503,
  error: 'Service Unavailable',
  code: 'NOT_READY',
  message: 'not ready: store',
};

/** Asks clients for no certificate: the mode `required` would end the handshake before the answer. */
function appOf(name: 'est' | 'admin', config: Config, pair: KeyPair, handle: RequestListener) {
  const end = new TlsEnd(name, config, TicketSecret.random());
  const options = { ...end.options, requestCert: false, rejectUnauthorized: false, ...connectionOptions(config) };
  const server = createServer(options, handle);
  end.present(server, tlsMaterial(pair, config.tls, undefined));
  return {
    server,
    listen: (binding: Binding) =>
      new Promise((resolve, reject) => {
        server.once('error', reject).listen(binding, () => resolve(undefined));
      }),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
