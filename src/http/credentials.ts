/** A client's credentials from its connection and request. */
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
 * The credentials for authentication. A resumed TLS session still has its certificate.
 * @param forwarded the client that a trusted proxy reports; the proxy's own certificate authenticates nobody
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

/** Read once per connection: the handshake is over at the first request, and there is no other. */
const byConnection = new WeakMap<TLSSocket, ConnectionCertificates>();

export function connectionCertificates(socket: TLSSocket): ConnectionCertificates {
  const known = byConnection.get(socket);
  if (known !== undefined) return known;
  const leaf = socket.getPeerX509Certificate();
  const certificates = leaf === undefined ? NONE : certificatesFrom(leaf);
  byConnection.set(socket, certificates);
  return certificates;
}

/** @param leaf linked to the client's further certificates, which a resumption loses */
function certificatesFrom(leaf: X509Certificate): ConnectionCertificates {
  const further: Buffer[] = [];
  for (let next = leaf.issuerCertificate; next !== undefined; next = next.issuerCertificate) {
    if (further.length === MAX_INTERMEDIATES) break;
    further.push(next.raw);
  }
  const { raw } = leaf;
  return { peerCertificate: raw, peerIntermediates: further, certificates: new PresentedCertificates(raw, further) };
}
