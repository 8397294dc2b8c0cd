/** Writes the database for all processes of a service: it answers whoever connects to its socket, which only this user can. */
import { createServer, type Socket } from 'node:net';
import { rmSync } from 'node:fs';
import { CallServer, type Session } from './call-server.ts';
import { isRequest, type Request, type Response, toPlainError } from './calls.ts';
import type { DatabaseOptions } from './database-options.ts';
import { isDatabaseOptions } from './database-options.ts';
import { toStoreError } from './errors.ts';
import { FrameReader, toFrame } from './frames.ts';
import { LEASE } from './revoked-serials.ts';
import { openRole } from './open-role.ts';
import type { Role } from './role.ts';
import { shareStoreLock, type ServiceLock } from '../sqlite/service-lock.ts';

/** What the supervisor tells it. */
export type WriterStart = DatabaseOptions & {
  /** Path of the socket. */
  readonly socket: string;
  /** Not the first of this service: somebody may not know yet that the former is gone. */
  readonly again: boolean;
};

export const isWriterStart = (value: unknown): value is WriterStart => isDatabaseOptions(value) && 'socket' in value;

/** The database, once it could be opened. */
interface Opened {
  readonly role: Role;
  readonly server: CallServer;
}

interface Connection {
  readonly name: string;
  readonly session: Session;
}

export class WriterServer {
  readonly #start: WriterStart;
  /** Of a store that one service has at a time. */
  readonly #lock: ServiceLock | undefined;
  /** undefined: it has not said who it is. */
  readonly #connections = new Map<Socket, Connection | undefined>();
  /** Names of processes that are dead: what is still on its way from them counts no more. */
  readonly #dead = new Set<string>();
  readonly #listener = createServer((socket) => this.#accept(socket));
  #opened: Opened | undefined;
  #opening: Promise<Opened> | undefined;
  #heart: NodeJS.Timeout | undefined;

  /** @throws EstuaryError 500 `STORE_IN_USE`, 503 `STORE_UNAVAILABLE` */
  constructor(start: WriterStart) {
    this.#start = start;
    this.#lock = start.driver === 'sqlite' ? shareStoreLock(start.path) : undefined;
  }

  /** Resolves when it can be connected to. */
  listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#listener.once('error', reject);
    // What a former one left there would be in the way.
    rmSync(this.#start.socket, { force: true });
    this.#listener.listen(this.#start.socket, () => resolve(undefined));
    return promise;
  }

  /** Whatever a process that is gone has still asked for is not carried out once this resolves. */
  async drop(name: string): Promise<void> {
    this.#dead.add(name);
    for (const [socket, connection] of this.#connections) {
      if (connection?.name !== name) continue;
      connection.session.drop();
      socket.destroy();
    }
    await this.#opened?.server.settled();
  }

  async close(): Promise<void> {
    clearInterval(this.#heart);
    this.#listener.close();
    for (const socket of this.#connections.keys()) socket.destroy();
    await this.#opened?.role.close();
    this.#lock?.release();
  }

  #accept(socket: Socket): void {
    const frames = new FrameReader();
    this.#connections.set(socket, undefined);
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const { message } of frames.push(chunk)) {
          if (socket.destroyed) return;
          if (!isRequest(message)) throw new TypeError('no request');
          this.#take(socket, message);
        }
      } catch {
        // Nobody of this service says that; but whoever it is goes by what it knew until it sees the end.
        this.#opened?.server.doubt();
        socket.destroy();
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#connections.get(socket)?.session.drop();
      this.#connections.delete(socket);
    });
  }

  /** @throws TypeError when it does not say who it is, or is dead */
  #take(socket: Socket, request: Request): void {
    const connection = this.#connections.get(socket);
    if (connection !== undefined) {
      connection.session.take(request);
      return;
    }
    if (!('name' in request) || this.#dead.has(request.name)) throw new TypeError('no name');
    if (this.#opened === undefined) void this.#openFor(socket, request.name);
    else this.#connect(socket, request.name, this.#opened);
  }

  async #openFor(socket: Socket, name: string): Promise<void> {
    try {
      const opened = await (this.#opening ??= this.#open());
      if (!socket.destroyed && !this.#dead.has(name)) this.#connect(socket, name, opened);
      else socket.destroy();
    } catch (error) {
      this.#opening = undefined;
      socket.write(toFrame({ failed: toPlainError(toStoreError(error)) }));
      socket.end();
    }
  }

  #connect(socket: Socket, name: string, { server }: Opened): void {
    const send = (response: Response): void => void socket.write(toFrame(response));
    const session = server.connect({ send, end: () => socket.end() });
    this.#connections.set(socket, { name, session });
  }

  async #open(): Promise<Opened> {
    const role = await openRole({ ...this.#start, role: 'writer' }, Date.now());
    const server = new CallServer(role);
    if (this.#start.again) server.doubt();
    this.#heart = setInterval(() => server.beat(), LEASE / 3);
    this.#opened = { role, server };
    return this.#opened;
  }
}
