/**
 * Whether OpenSSL's error queue of this thread is clean: what is left in it fails the next read of any TLS connection.
 * The other end of the connection is in a separate thread, since writing would clear the queue.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type TLSSocket } from 'node:tls';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCertificate } from '../support/certificates.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { ed25519 } from './fixed-keys.ts';

export class TlsProbe {
  readonly #server: Server;
  readonly #client: Worker;
  #socket: TLSSocket;

  private constructor(server: Server, client: Worker, socket: TLSSocket) {
    this.#server = server;
    this.#client = client;
    this.#socket = socket;
  }

  static async open(): Promise<TlsProbe> {
    const keys = ed25519('tls probe');
    const { der } = await makeCertificate({ subject: 'CN=probe', kind: 'ed25519', keys, serial: '01' });
    const server = createServer({ cert: encodePem('CERTIFICATE', der), key: pkcs8Pem(keys) });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const accepted = nextConnection(server);
    const address = server.address();
    const client = new Worker(new URL(import.meta.url), { workerData: { probe: portOf(address) } });
    const socket = await accepted;
    return new TlsProbe(server, client, socket);
  }

  /** What OpenSSL says when an octet is read; undefined: nothing. After a fault, the connection is a new one. */
  async fault(): Promise<string | undefined> {
    const socket = this.#socket;
    try {
      await new Promise<void>((resolve, reject) => {
        socket.removeAllListeners('error').once('error', reject);
        // The octet is read first; the error comes when OpenSSL is asked for more.
        socket.removeAllListeners('data').once('data', () => setImmediate(resolve));
        this.#client.postMessage('write');
      });
      return undefined;
    } catch (error) {
      const again = nextConnection(this.#server);
      socket.destroy();
      this.#socket = await again;
      return error instanceof Error ? error.message.trim() : String(error);
    }
  }

  async close(): Promise<void> {
    this.#socket.removeAllListeners('error').on('error', () => undefined);
    await this.#client.terminate();
    this.#socket.destroy();
    this.#server.close();
  }
}

const nextConnection = (server: Server): Promise<TLSSocket> =>
  new Promise((resolve) => server.once('secureConnection', (socket: TLSSocket) => resolve(socket)));

function portOf(address: string | AddressInfo | null): number {
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** The other end: an octet for each message, and a new connection for each that is closed. */
function client(port: number): void {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    socket.removeAllListeners();
    parentPort?.removeAllListeners('message');
    client(port);
  });
  parentPort?.on('message', () => socket.write('x'));
}

const data: unknown = workerData;
if (!isMainThread && typeof data === 'object' && data !== null && 'probe' in data) client(Number(data.probe));
