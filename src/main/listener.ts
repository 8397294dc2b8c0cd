/** One listener of the service, from bind to close. */
import { lookup } from 'node:dns/promises';
import type { Server } from 'node:http';
import { isIP } from 'node:net';
import type { Config } from '../config/schema.ts';
import { affordable, type ConnectionLimits, openFileLimit } from '../http/connection-tally.ts';
import { Connections, type ConnectionsOptions } from '../http/connections.ts';
import { Balancers } from '../http/proxy-protocol.ts';
import { codeOf, describe } from '../errors.ts';
import type { Logger } from '../log.ts';

export type ListenerName = 'est' | 'admin' | 'publication';

/** The relevant part of a Fastify instance. */
interface App {
  readonly server: Server;
  readonly listen: (binding: Binding) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

interface ListenerContext {
  readonly limits: ConnectionLimits;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Shared by all listeners; warns if the system allows fewer connections than the configuration. */
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
      'the limit of open files allows fewer connections per listener than server.max_connections',
    );
  return { limits, log };
}

/** Of the EST listener. */
export function proxies({ est, server }: Config): ConnectionsOptions['proxies'] {
  if (est.proxy_protocol.length === 0) return undefined;
  return { balancers: new Balancers(est.proxy_protocol), headerTimeout: server.handshake_timeout * 1000 };
}

/** Milliseconds between checks for idle connections while stopping. */
const IDLE_CHECK = 100;

export interface Binding {
  readonly host: string;
  readonly port: number;
  /** Other nodes on this host may bind it too. */
  readonly reusePort?: boolean;
}

export class Listener {
  readonly #name: ListenerName;
  readonly #binding: Binding;
  readonly #app: App;
  readonly #log: ListenerContext['log'];
  readonly #connections: Connections;

  constructor(
    name: ListenerName,
    { host, port, reusePort = false }: Binding,
    app: App,
    context: ListenerContext,
    proxies?: ConnectionsOptions['proxies'],
  ) {
    this.#name = name;
    this.#binding = { host, port, reusePort };
    this.#app = app;
    this.#log = context.log;
    this.#connections = new Connections({ listener: name, server: app.server, ...context, proxies });
  }

  /**
   * Binds the port. Connections wait until {@link open}.
   * @throws Error that names the listener, its address and port, and what to do
   */
  async bind(): Promise<void> {
    const { host, port } = this.#binding;
    try {
      // For `localhost`, Fastify creates further servers for its other addresses, which would bypass limits, reload and
      // close.
      const address = isIP(host) === 0 ? (await lookup(host)).address : host;
      await this.#listen(address);
    } catch (error) {
      const hint = HINTS[codeOf(error)] ?? `Correct ${this.#name}.host or ${this.#name}.port`;
      throw new Error(
        `the ${this.#name} listener cannot listen on ${host}, port ${port} (${describe(error)}). ${hint.replaceAll('NAME', this.#name)}.`,
        { cause: error },
      );
    }
  }

  /** `::` is IPv6 and IPv4, and IPv4 alone on a machine without IPv6. */
  async #listen(address: string): Promise<void> {
    try {
      await this.#app.listen({ ...this.#binding, host: address });
    } catch (error) {
      if (address !== '::' || !NO_IPV6.has(codeOf(error))) throw error;
      await this.#app.listen({ ...this.#binding, host: '0.0.0.0' });
    }
  }

  open(): void {
    this.#connections.open();
    const address = this.#app.server.address();
    if (address === null || typeof address === 'string') return;
    this.#log.info({ listener: this.#name, address: address.address, port: address.port }, 'listening');
  }

  /** Stops accepting and waits for requests in flight. @param grace milliseconds; then open connections are closed */
  async close(grace: number): Promise<void> {
    const cut = setTimeout(() => this.#connections.closeAll(), grace);
    // A connection is kept alive after its last response, so close it when idle.
    const idle = setInterval(() => this.#app.server.closeIdleConnections(), IDLE_CHECK);
    const closed = this.#app.close();
    this.#connections.closeSilent();
    await closed;
    clearTimeout(cut);
    clearInterval(idle);
  }
}

const NO_IPV6: ReadonlySet<string> = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'Another program uses the port: stop it, or change NAME.port',
  EADDRNOTAVAIL: 'This host does not have the address: change NAME.host',
  EACCES: 'Use a port above 1023, or grant CAP_NET_BIND_SERVICE',
  ENOTFOUND: 'The host name is unknown: change NAME.host',
};

/** Binds the ports of all listeners before any of them serves. @throws Error that names every listener that failed */
export async function bindAll(listeners: readonly Listener[]): Promise<void> {
  const failures: string[] = [];
  for (const listener of listeners)
    await listener.bind().catch((error: unknown) => void failures.push(describe(error)));
  if (failures.length > 0) throw new Error(failures.join('\n'));
}
