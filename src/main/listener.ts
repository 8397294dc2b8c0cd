/** One listener of the service, from the first connection to the last. */
import { lookup } from 'node:dns/promises';
import type { Server as HttpServer } from 'node:http';
import { isIP, type AddressInfo } from 'node:net';
import type { Config } from '../config/schema.ts';
import type { ConnectionLimits } from '../http/connection-tally.ts';
import { Connections, type ConnectionsOptions } from '../http/connections.ts';
import { affordable, openFileLimit } from '../http/open-files.ts';
import type { Logger } from '../log.ts';

export type ListenerName = 'est' | 'admin' | 'publication';

/** A Fastify instance, as far as it matters here. */
export interface App<S extends HttpServer> {
  readonly server: S;
  readonly listen: (at: { host: string; port: number }) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

export interface ListenerContext {
  readonly limits: ConnectionLimits;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** What all listeners share; says so when the system allows fewer connections than the configuration. */
export function listenerContext(
  { server, publication }: Pick<Config, 'server' | 'publication'>,
  log: ListenerContext['log'],
): ListenerContext {
  const wanted = { total: server.max_connections, perAddress: server.max_connections_per_address };
  const openFiles = openFileLimit();
  const limits = affordable(wanted, publication.enabled ? 3 : 2, openFiles);
  if (limits.total < wanted.total)
    log.warn(
      { open_files: openFiles, max_connections: limits.total },
      'the limit of open files allows fewer connections than server.max_connections (for each listener)',
    );
  return { limits, log };
}

/** Milliseconds between looks for connections that have become idle while stopping. */
const IDLE_CHECK = 100;

export class Listener<S extends HttpServer = HttpServer> {
  readonly #name: ListenerName;
  readonly #at: { readonly host: string; readonly port: number };
  readonly #app: App<S>;
  readonly #log: ListenerContext['log'];
  readonly #connections: Connections;

  constructor(
    name: ListenerName,
    { host, port }: { readonly host: string; readonly port: number },
    app: App<S>,
    context: ListenerContext,
    proxies?: ConnectionsOptions['proxies'],
  ) {
    this.#name = name;
    this.#at = { host, port };
    this.#app = app;
    this.#log = context.log;
    this.#connections = new Connections({ listener: name, server: app.server, ...context, proxies });
  }

  get server(): S {
    return this.#app.server;
  }

  async listen(): Promise<void> {
    const { host, port } = this.#at;
    // Of `localhost`, Fastify makes further servers for its other addresses, which know no limits, no reload and no end.
    const address = isIP(host) === 0 ? (await lookup(host)).address : host;
    await this.#app.listen({ host: address, port });
    this.#log.info({ listener: this.#name, address, port: portOf(this.server.address()) ?? port }, 'listening');
  }

  /**
   * Stops accepting and waits for the requests in flight.
   *
   * @param grace milliseconds; what is still open then is cut
   */
  async close(grace: number): Promise<void> {
    const cut = setTimeout(() => this.#connections.closeAll(), grace);
    // A connection whose last request has just been answered is kept alive for a next one that must not come.
    const idle = setInterval(() => this.server.closeIdleConnections(), IDLE_CHECK);
    const closed = this.#app.close();
    this.#connections.closeSilent();
    await closed;
    clearTimeout(cut);
    clearInterval(idle);
  }
}

function portOf(address: AddressInfo | string | null): number | undefined {
  return typeof address === 'object' ? address?.port : undefined;
}
