/** What a connection and its request show of the client. */
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { PresentedCredentials } from '../auth/identity.ts';
import {
  MAX_INTERMEDIATES,
  PresentedCertificates,
  type ConnectionCertificates,
} from '../auth/mtls/presented-certificates.ts';
import { requestAddress } from './address.ts';

/**
 * The credentials of a request as authentication takes them. A resumed TLS session still has its certificate.
 *
 * @param forwarded what a trusted proxy says of its client; the proxy's own certificate authenticates nobody
 */
export function presentedCredentials(
  request: IncomingMessage,
  forwarded?: { readonly certificates: PresentedCertificates | undefined },
): PresentedCredentials {
  const { socket } = request;
  const own = socket instanceof TLSSocket ? connectionCertificates(socket) : NONE;
  return {
    ...(forwarded === undefined ? own : forwardedCertificates(forwarded.certificates)),
    authorization: request.headers.authorization,
    address: requestAddress(request),
    ...(forwarded === undefined ? {} : { forwarded: true }),
  };
}

function forwardedCertificates(certificates: PresentedCertificates | undefined): ConnectionCertificates {
  if (certificates === undefined) return NONE;
  return { peerCertificate: certificates.der, peerIntermediates: certificates.further, certificates };
}

const NONE: ConnectionCertificates = { peerCertificate: undefined, peerIntermediates: [], certificates: undefined };

/** Taken from each connection once: the handshake is over when the first request comes, and there is no other. */
const byConnection = new WeakMap<TLSSocket, ConnectionCertificates>();

export function connectionCertificates(socket: TLSSocket): ConnectionCertificates {
  const known = byConnection.get(socket);
  if (known !== undefined) return known;
  const leaf = socket.getPeerX509Certificate();
  const certificates = leaf === undefined ? NONE : certificatesFrom(leaf);
  byConnection.set(socket, certificates);
  return certificates;
}

/** @param leaf with what the client sent beside it behind it; that is gone after a resumption */
function certificatesFrom(leaf: X509Certificate): ConnectionCertificates {
  const further: Buffer[] = [];
  for (let next = leaf.issuerCertificate; next !== undefined; next = next.issuerCertificate) {
    if (further.length === MAX_INTERMEDIATES) break;
    further.push(next.raw);
  }
  const { raw } = leaf;
  return { peerCertificate: raw, peerIntermediates: further, certificates: new PresentedCertificates(raw, further) };
}
