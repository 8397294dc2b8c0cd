/** A server's replica as a test wants it: a TCP relay on the loopback that can die, fall silent and come back. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { freePort } from './ports.ts';

/** What has gone over a relay. */
export interface Traffic {
  /** Octets from its clients, and to them. */
  sent: number;
  received: number;
  /** How often a client has said something after it was told something: what it waited for was one round trip. */
  turns: number;
}

export class TcpRelay {
  readonly port: number;
  readonly traffic: Traffic = { sent: 0, received: 0, turns: 0 };
  #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server;
  #silent = false;
  #allowance: () => number = () => Infinity;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    this.#serve(server);
  }

  /** @param target a port of the loopback */
  static async start(target: number): Promise<TcpRelay> {
    const server = createServer({ noDelay: true });
    return new TcpRelay(server, await listen(server, await freePort()), target);
  }

  get url(): string {
    return `https://localhost:${this.port}`;
  }

  /** Where new connections go to. */
  get target(): number {
    return this.#target;
  }

  /** Sends new connections elsewhere, and ends those that are. @param target a port of the loopback */
  pointTo(target: number): void {
    this.#target = target;
    this.cut();
  }

  /** Whether new connections are accepted, and then nothing ever comes back. */
  silence(silent: boolean): void {
    this.#silent = silent;
    if (silent) this.cut();
  }

  /** Each new connection ends where the target would send more than so many octets: what goes beyond is lost. */
  allow(octets: () => number): void {
    this.#allowance = octets;
  }

  /** Ends every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Refuses connections from now on. */
  async die(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  /** The same port again. */
  async revive(): Promise<void> {
    this.#server = createServer({ noDelay: true });
    this.#serve(this.#server);
    await listen(this.#server, this.port);
  }

  /** Nothing is held back on the way, or what both ends send at once would wait 40 ms for an acknowledgment. */
  #serve(server: Server): void {
    server.on('connection', (client) => {
      this.#keep(client);
      if (this.#silent) return;
      const target = connect({ port: this.#target, host: '127.0.0.1', noDelay: true });
      this.#keep(target);
      client.pipe(target);
      let hasAnswered = true;
      client.on('data', (chunk: Buffer) => {
        this.traffic.sent += chunk.length;
        if (hasAnswered) this.traffic.turns++;
        hasAnswered = false;
      });
      let left = this.#allowance();
      target.on('data', (chunk: Buffer) => {
        this.traffic.received += chunk.length;
        hasAnswered = true;
        left -= chunk.length;
        if (left < 0) return void target.destroy();
        if (client.write(chunk)) return;
        target.pause();
        client.once('drain', () => target.resume());
      });
      target.on('end', () => client.end());
      client.on('close', () => target.destroy());
      target.on('close', () => client.destroy());
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const address: AddressInfo | string | null = server.address();
      if (address === null || typeof address === 'string') reject(new Error('not listening'));
      else resolve(address.port);
    });
  });
}
