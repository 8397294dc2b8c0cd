import type { TLSSocket } from 'node:tls';

const EXPORTER_LABEL = 'EXPORTER-Channel-Binding';
const EXPORTER_LENGTH = 32;

type BoundSocket = Pick<
  TLSSocket,
  'getProtocol' | 'isSessionReused' | 'exportKeyingMaterial' | 'getFinished' | 'getPeerFinished'
>;

/**
 * tls-unique in TLS 1.2 (RFC 5929 §3), tls-exporter in TLS 1.3 (RFC 9266); undefined if unavailable. tls-unique is the
 * first Finished message: the client's in a full handshake, the server's in a resumed one.
 * @param own the end of the connection that asks
 */
export function channelBinding(socket: BoundSocket, own: 'client' | 'server'): Buffer | undefined {
  if (socket.getProtocol() === 'TLSv1.3')
    return socket.exportKeyingMaterial(EXPORTER_LENGTH, EXPORTER_LABEL, Buffer.alloc(0));
  const first = socket.isSessionReused() ? 'server' : 'client';
  return first === own ? socket.getFinished() : socket.getPeerFinished();
}
