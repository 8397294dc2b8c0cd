/**
 * The TCP connections of one listener, from before the TLS handshake until they are closed: no more than the limits allow,
 * and none left when the service stops. HTTP's own list knows a connection only once its handshake is done.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { lockoutAddress } from '../auth/identity.ts';
import { CountedLines } from '../counted-repeats.ts';
import type { Logger } from '../log.ts';
import { clientAddress, setClientAddress, transportOf } from './address.ts';
import { type ConnectionLimits, ConnectionTally, type ReachedLimit } from './connection-tally.ts';
import { type Balancers, takeProxyHeader } from './proxy-protocol.ts';

/**
 * Overload by handshakes: they cost more than anything that follows, and have cost it before there is a request to refuse. Where a crowd of
 * them is under way and the event loop is late, new connections are closed at once, so that those that have begun come to their end.
 * Neither alone is overload: many slow clients do not make the loop late, and a busy machine does without a crowd.
 */

/** Connections that have not become secure yet. */
const CROWD = 400;
/** Milliseconds that the event loop is late. */
const LATE = 250;
/** Milliseconds between looks. */
const INTERVAL = 50;

class Crowd {
  #handshakes = 0;
  #lateness = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Whether one more handshake is one too many. */
  get isTooMuch(): boolean {
    return this.#handshakes >= CROWD && this.#lateness >= LATE;
  }

  /** A connection has come. @returns what is to be called when it is secure, or gone */
  began(): () => void {
    this.#handshakes++;
    this.#watch();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#handshakes--;
    };
  }

  /** Looks at the clock only as long as somebody shakes hands. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    let due = performance.now() + INTERVAL;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#lateness = now - due;
      due = now + INTERVAL;
      if (this.#handshakes > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#lateness = 0;
    }, INTERVAL);
    this.#timer.unref();
  }
}

export interface ConnectionsOptions {
  readonly listener: string;
  readonly server: Server;
  readonly limits: ConnectionLimits;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Given where balancers tell whose connections theirs are. */
  readonly proxies?: { readonly balancers: Balancers; /** Milliseconds. */ readonly headerTimeout: number } | undefined;
}

/** A connection that counts for its client's address. */
interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Its TLS handshake is under way; undefined where handshakes do not count. */
  endHandshake: (() => void) | undefined;
  /** Requests without a response. */
  readonly requests: Set<IncomingMessage>;
}

const isInHandshake = ({ endHandshake }: Connection): boolean => endHandshake !== undefined;
const isSilent = ({ requests }: Connection): boolean => requests.size === 0;
/** Its requests are still arriving. */
const isSlow = ({ requests }: Connection): boolean => [...requests].every(({ complete }) => !complete);

const ignore = (): void => undefined;

/** Milliseconds between two log entries about refused connections. */
const QUIET = 10_000;

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #tally: ConnectionTally<Connection>;
  readonly #open = new Set<Socket>();
  /** Those that wait for {@link open}. */
  #held: Set<Socket> | undefined = new Set();
  readonly #serve: (socket: Socket) => void;
  readonly #counted = new WeakMap<object, Connection>();
  readonly #crowd = new Crowd();
  readonly #boundsHandshakes: boolean;
  /** Octets of the balancer's header. */
  readonly #headers = new WeakMap<Socket, number>();
  readonly #lines: CountedLines;
  #refused = 0;
  #displaced = 0;
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
      const connection = this.#counted.get(transportOf(socket));
      connection?.endHandshake?.();
      if (connection !== undefined) connection.endHandshake = undefined;
    });
    for (const event of ['request', 'checkExpectation'])
      server.prependListener(event, (request: IncomingMessage, response: ServerResponse) => {
        const requests = this.#counted.get(transportOf(request.socket))?.requests.add(request);
        response.once('close', () => requests?.delete(request));
      });
    const listeners = server.listeners('connection');
    server.removeAllListeners('connection');
    this.#serve = (socket) => {
      for (const listener of listeners) Reflect.apply(listener, server, [socket]);
    };
    const serve = (socket: Socket): void => {
      if (!this.#admit(socket)) return;
      if (this.#held === undefined) this.#serve(socket);
      else this.#held.add(socket.on('error', ignore));
    };
    server.on('connection', (socket: Socket) => {
      if (options.proxies !== undefined && options.proxies.balancers.has(socket.remoteAddress ?? ''))
        this.#throughBalancer(socket, options.proxies.headerTimeout, serve);
      else serve(socket);
    });
  }

  /** Begins to serve: until then, connections wait. */
  open(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const socket of held) {
      socket.off('error', ignore);
      if (!socket.destroyed) this.#serve(socket);
    }
  }

  /** Drops the connections on which nothing has arrived yet, and those that nobody has served. */
  closeSilent(): void {
    for (const socket of this.#held ?? []) socket.destroy();
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
    const reached = this.#crowd.isTooMuch ? 'overload' : this.#tally.reached(address);
    if (reached !== undefined && !this.#makeRoom(address, reached)) {
      socket.destroy();
      this.#refused += 1;
      this.#warn(address, reached);
      return false;
    }
    const endHandshake = this.#boundsHandshakes ? this.#crowd.began() : undefined;
    const connection: Connection = { socket, address, endHandshake, requests: new Set() };
    this.#tally.add(address, connection);
    this.#open.add(socket);
    this.#counted.set(socket, connection);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#held?.delete(socket);
      endHandshake?.();
      this.#tally.remove(address, connection);
    });
    return true;
  }

  /** Closes a connection of an address that has many, if the other address has few. */
  #makeRoom(address: string, reached: ReachedLimit | 'overload'): boolean {
    if (reached === 'max_connections_per_address') return false;
    const inOrder = reached === 'overload' ? [isInHandshake] : [isSilent, isSlow];
    const displaced = this.#tally.displaced(address, ...inOrder);
    if (displaced === undefined) return false;
    displaced.socket.destroy();
    displaced.endHandshake?.();
    this.#tally.remove(displaced.address, displaced);
    this.#displaced += 1;
    this.#warn(displaced.address, reached);
    return true;
  }

  /** A flood of connections does not flood the log. */
  #warn(address: string, reached: ReachedLimit | 'overload'): void {
    if (performance.now() - this.#lastWarning < QUIET) return;
    const { listener, log } = this.#options;
    const limit = reached === 'overload' ? reached : `server.${reached}`;
    const [refused, displaced] = [this.#refused, this.#displaced];
    log.warn({ listener, address, limit, refused, displaced }, 'too many connections');
    this.#refused = 0;
    this.#displaced = 0;
    this.#lastWarning = performance.now();
  }
}
