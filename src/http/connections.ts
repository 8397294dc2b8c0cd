/**
 * The TCP connections of one listener, from before the TLS handshake until they are closed: no more than there may be
 *, and none left when the service stops. HTTP's own list knows a connection only once its handshake is done.
 */
import type { Server, Socket } from 'node:net';
import type { Logger } from '../log.ts';
import { lockoutAddress } from '../auth/client-address.ts';
import { CountedLines } from '../counted-lines.ts';
import { clientAddress, setClientAddress } from './address.ts';
import { takeProxyHeader, type Balancers } from './proxy-connection.ts';
import { Crowd } from './handshake-crowd.ts';
import { ConnectionTally, type ConnectionLimits, type ReachedLimit } from './connection-tally.ts';

export interface ConnectionsOptions {
  readonly listener: string;
  readonly server: Server;
  readonly limits: ConnectionLimits;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Given where balancers tell whose connections theirs are. */
  readonly proxies?: { readonly balancers: Balancers; /** Milliseconds. */ readonly headerTimeout: number } | undefined;
}

/** Milliseconds between two lines of log about refused connections. */
const QUIET = 10_000;

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #tally: ConnectionTally;
  readonly #open = new Set<Socket>();
  readonly #crowd = new Crowd();
  readonly #boundsHandshakes: boolean;
  /** What ends the handshake of a connection. */
  readonly #handshakes = new WeakMap<object, () => void>();
  /** Octets of the balancer's header. */
  readonly #headers = new WeakMap<Socket, number>();
  readonly #lines: CountedLines;
  #refused = 0;
  #lastWarning = -Infinity;

  /** Steps in before whatever the server does with a connection. */
  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#lines = new CountedLines(options.log);
    this.#tally = new ConnectionTally(options.limits);
    const { server } = options;
    // Administrators and health checks get in whatever the devices do.
    this.#boundsHandshakes = options.listener === 'est';
    server.on('secureConnection', (socket: object) => {
      const below: unknown = Reflect.get(socket, '_parent');
      if (typeof below === 'object' && below !== null) this.#handshakes.get(below)?.();
    });
    const listeners = server.listeners('connection');
    server.removeAllListeners('connection');
    const serve = (socket: Socket): void => {
      if (!this.#admit(socket)) return;
      for (const listener of listeners) Reflect.apply(listener, server, [socket]);
    };
    server.on('connection', (socket: Socket) => {
      if (options.proxies !== undefined && options.proxies.balancers.has(socket.remoteAddress ?? ''))
        this.#throughBalancer(socket, options.proxies.headerTimeout, serve);
      else serve(socket);
    });
  }

  /** Drops the connections on which nothing has arrived yet. */
  closeSilent(): void {
    for (const socket of this.#open) if (socket.bytesRead <= (this.#headers.get(socket) ?? 0)) socket.destroy();
  }

  /** Whose connection it is, its header tells; until then it counts for nobody. */
  #throughBalancer(socket: Socket, timeout: number, serve: (socket: Socket) => void): void {
    const { listener } = this.#options;
    const balancer = clientAddress(socket);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    takeProxyHeader(socket, timeout, {
      taken: (address, length) => {
        if (address !== undefined) setClientAddress(socket, address);
        this.#headers.set(socket, length);
        serve(socket);
      },
      refused: (detail) => {
        this.#lines.info(`proxy ${balancer}`, { listener, address: balancer, detail }, 'PROXY header refused');
      },
    });
  }

  closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #admit(socket: Socket): boolean {
    // It may have been reset already.
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return false;
    }
    const address = lockoutAddress(clientAddress(socket));
    const reached = this.#crowd.isTooMuch ? 'overload' : this.#tally.add(address);
    if (reached !== undefined) {
      socket.destroy();
      this.#warn(address, reached);
      return false;
    }
    this.#open.add(socket);
    const shaken = this.#boundsHandshakes ? this.#crowd.began() : undefined;
    if (shaken !== undefined) this.#handshakes.set(socket, shaken);
    socket.once('close', () => {
      this.#open.delete(socket);
      shaken?.();
      this.#tally.remove(address);
    });
    return true;
  }

  /** Whoever floods the listener does not flood the log. */
  #warn(address: string, reached: ReachedLimit | 'overload'): void {
    this.#refused += 1;
    if (performance.now() - this.#lastWarning < QUIET) return;
    const { listener, log } = this.#options;
    const limit = reached === 'overload' ? reached : `server.${reached}`;
    log.warn({ listener, address, limit, refused: this.#refused }, 'too many connections');
    this.#refused = 0;
    this.#lastWarning = performance.now();
  }
}
