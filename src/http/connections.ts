/**
 * The TCP connections of one listener, from before the TLS handshake until they close: within the limits, and none left
 * when the service stops. HTTP's own list knows a connection only after its handshake.
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
 * Detects overload by handshakes, which cost more than what follows and precede any request that could be rejected. If
 * many are in progress and the event loop lags, new connections are closed at once, so that the others complete. One
 * condition alone is not overload: many slow clients do not delay the loop, and a busy machine may have few handshakes.
 */

/** Handshakes in progress. */
const CROWD = 400;
/** Milliseconds of event loop delay. */
const LATE = 250;
/** Milliseconds between measurements. */
const INTERVAL = 50;

class Crowd {
  #handshakes = 0;
  #lateness = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Whether to refuse another handshake. */
  get isOverloaded(): boolean {
    return this.#handshakes >= CROWD && this.#lateness >= LATE;
  }

  /** Counts a connection. @returns a function to call when it is secure or gone */
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

  /** Measures only during handshakes. */
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
  /** Set if balancers report client addresses. */
  readonly proxies?: { readonly balancers: Balancers; /** Milliseconds. */ readonly headerTimeout: number } | undefined;
}

/** A connection that counts for its client's address. */
interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Ends its handshake; undefined if handshakes do not count. */
  endHandshake: (() => void) | undefined;
  /** Requests without a response. */
  readonly requests: Set<IncomingMessage>;
}

const isInHandshake = ({ endHandshake }: Connection): boolean => endHandshake !== undefined;
const isSilent = ({ requests }: Connection): boolean => requests.size === 0;
/** Whether all its requests are still arriving. */
const isSlow = ({ requests }: Connection): boolean => [...requests].every(({ complete }) => !complete);

const ignore = (): void => undefined;

/** Milliseconds between log entries about refused connections. */
const QUIET = 10_000;

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #tally: ConnectionTally<Connection>;
  readonly #open = new Set<Socket>();
  /** Connections that wait for {@link open}. */
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

  /** Runs before the server's other connection listeners. */
  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#lines = new CountedLines(options.log);
    this.#tally = new ConnectionTally(options.limits);
    const { server } = options;
    // Administrators and health checks get in regardless of the devices.
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

  /** Starts serving; until then, connections wait. */
  open(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const socket of held) {
      socket.off('error', ignore);
      if (!socket.destroyed) this.#serve(socket);
    }
  }

  /** Closes connections without any data, and those not served yet. */
  closeSilent(): void {
    for (const socket of this.#held ?? []) socket.destroy();
    for (const socket of this.#open) if (socket.bytesRead <= (this.#headers.get(socket) ?? 0)) socket.destroy();
  }

  /** The balancer's header names the client; until then the connection counts for nobody. */
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
        this.#lines.info(`proxy ${balancer}`, { listener, address: balancer, detail }, 'PROXY header rejected');
      },
    });
  }

  closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #admit(socket: Socket): boolean {
    // It may already be reset.
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return false;
    }
    const address = lockoutAddress(clientAddress(socket));
    const reached = this.#crowd.isOverloaded ? 'overload' : this.#tally.reached(address);
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

  /** Limits log entries during a flood of connections. */
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
