/** What a connection and its request show of the client. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { PresentedCredentials } from '../auth/identity.ts';

/** The client's network address; an IPv4 one in its own form also on a dual-stack socket. */
export function remoteAddress(request: IncomingMessage): string {
  const address = request.socket.remoteAddress ?? 'unknown';
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(address)?.[1] ?? address;
}

/** The credentials of a request as authentication takes them. A resumed TLS session still has its certificate. */
export function presentedCredentials(request: IncomingMessage): PresentedCredentials {
  const { socket } = request;
  return {
    peerCertificate: socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined,
    peerIntermediates: socket instanceof TLSSocket ? furtherCertificates(socket) : [],
    authorization: request.headers.authorization,
    address: remoteAddress(request),
  };
}

/** A client may send long nonsense; a real chain is short. */
const MAX_FURTHER = 8;

/** DER of what the client sent beside its own certificate; gone after a resumption. */
function furtherCertificates(socket: TLSSocket): Buffer[] {
  const certificates: Buffer[] = [];
  let next = socket.getPeerX509Certificate()?.issuerCertificate;
  while (next !== undefined && certificates.length < MAX_FURTHER) {
    certificates.push(next.raw);
    next = next.issuerCertificate;
  }
  return certificates;
}
