/** Writes the database for all processes of a service: it answers whoever connects to its socket, which only this user can. */
import { createServer, type Socket } from 'node:net';
import { rmSync } from 'node:fs';
import { CallServer, type Session } from './call-server.ts';
import { isRequest, type Request, type Response, toPlainError } from './calls.ts';
import { toEstuaryError } from './errors.ts';
import { FrameReader, toFrame } from './frames.ts';
import { LEASE } from './revoked-serials.ts';
import { openWriter, type Role } from './roles.ts';
import { shareStoreLock, type ServiceLock } from './service-lock.ts';
import type { DatabaseOptions } from './thread-link.ts';

/** What the supervisor tells it. */
export interface WriterStart extends DatabaseOptions {
  /** Path of the socket. */
  readonly socket: string;
  /** Not the first of this service: somebody may not know yet that the former is gone. */
  readonly again: boolean;
}

export const isWriterStart = (value: unknown): value is WriterStart =>
  typeof value === 'object' && value !== null && 'socket' in value && 'path' in value && 'audit_file' in value;

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
  readonly #lock: ServiceLock;
  /** undefined: it has not said who it is. */
  readonly #connections = new Map<Socket, Connection | undefined>();
  /** Names of processes that are dead: what is still on its way from them counts no more. */
  readonly #dead = new Set<string>();
  readonly #listener = createServer((socket) => this.#accept(socket));
  #opened: Opened | undefined;
  #heart: NodeJS.Timeout | undefined;

  /** @throws EstuaryError 500 `STORE_IN_USE`, 503 `STORE_UNAVAILABLE` */
  constructor(start: WriterStart) {
    this.#start = start;
    this.#lock = shareStoreLock(start.path);
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

  /** Whatever a process that is gone has still asked for is not carried out from here on. */
  drop(name: string): void {
    this.#dead.add(name);
    for (const [socket, connection] of this.#connections) {
      if (connection?.name !== name) continue;
      connection.session.drop();
      socket.destroy();
    }
  }

  close(): void {
    clearInterval(this.#heart);
    this.#listener.close();
    for (const socket of this.#connections.keys()) socket.destroy();
    this.#opened?.role.close();
    this.#lock.release();
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
    const send = (response: Response): void => void socket.write(toFrame(response));
    try {
      this.#opened ??= this.#open();
    } catch (error) {
      send({ failed: toPlainError(toEstuaryError(error)) });
      socket.end();
      return;
    }
    const session = this.#opened.server.connect({ send, end: () => socket.end() });
    this.#connections.set(socket, { name: request.name, session });
  }

  #open(): Opened {
    const role = openWriter(this.#start, Date.now());
    const server = new CallServer(role);
    if (this.#start.again) server.doubt();
    this.#heart = setInterval(() => server.beat(), LEASE / 3);
    return { role, server };
  }
}
