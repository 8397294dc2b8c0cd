/** An HTTP proxy that connects (CONNECT), with a user if a test wants one. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { encodePem } from '../../src/pki/der/pem.ts';
import type { Issuer } from './certificates.ts';
import { pkcs8Pem } from './keys.ts';

export interface ConnectProxy {
  readonly port: number;
  /** The targets that were connected to. */
  readonly targets: readonly string[];
  stop(): Promise<void>;
}

export async function startProxy({
  user,
  certificate,
  status = 200,
}: {
  /** `user:password` */
  readonly user?: string;
  /** Of a proxy that speaks TLS. */
  readonly certificate?: Issuer;
  /** What it answers in place of connecting. */
  readonly status?: number;
} = {}): Promise<ConnectProxy> {
  const targets: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server =
    certificate === undefined
      ? createServer()
      : createSecureServer({ cert: encodePem('CERTIFICATE', certificate.der), key: pkcs8Pem(certificate.keys) });
  server.on('connection', (socket: Socket) => void sockets.add(socket));
  server.on('connect', (request, socket, head) => {
    socket.on('error', () => undefined);
    const target = request.url ?? '';
    const expected = user === undefined ? undefined : `Basic ${Buffer.from(user).toString('base64')}`;
    if (expected !== undefined && request.headers['proxy-authorization'] !== expected)
      return socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n');
    if (status !== 200) return socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`);
    targets.push(target);
    const { hostname, port } = new URL(`http://${target}`);
    const upstream = connect(Number(port), hostname.replace(/^\[|\]$/g, ''), () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    sockets.add(upstream);
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
    return undefined;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    targets,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
