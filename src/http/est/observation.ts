/** What a request shows of the client's certificate, for the states of the fleet (docs/guides/fleet.md). */
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { PresentedCredentials } from '../../auth/identity.ts';
import { presentedCertificates } from '../../auth/mtls/presented-certificates.ts';
import type { Ca } from '../../ca/router.ts';
import type { ErrorCode, EstuaryError } from '../../errors.ts';
import type { SeenRequest } from '../../fleet/use-recorder.ts';
import type { Exchange } from '../exchange.ts';
import type { EstAnswer } from './operation.ts';
import type { EstRoute } from './route.ts';

/** @param seen with the milliseconds since the connection and the request began, in place of times */
export type ObserveRequest = (
  seen: Omit<SeenRequest, 'at' | 'connected_at'> & { readonly age: number; readonly took: number },
) => void;

interface Answered {
  readonly route: EstRoute;
  readonly exchange: Exchange;
  readonly presented: PresentedCredentials;
  readonly socket: Socket;
  readonly answer?: EstAnswer;
  readonly error?: EstuaryError;
}

/** A 401 to a certificate that would have been accepted once: TLS, or the proxy, has proved its key. */
const REJECTED: readonly ErrorCode[] = [
  'CLIENT_CERTIFICATE_EXPIRED',
  'CLIENT_CERTIFICATE_NOT_YET_VALID',
  'CLIENT_CERTIFICATE_UNTRUSTED',
  'CLIENT_CERTIFICATE_ISSUER_EXPIRED',
  'CLIENT_CERTIFICATE_ISSUER_REVOKED',
  'CLIENT_CERTIFICATE_REVOCATION_UNKNOWN',
  'CLIENT_CERTIFICATE_KEY_REFUSED',
  'CLIENT_CERTIFICATE_PURPOSE',
  'CLIENT_CERTIFICATE_UNSUPPORTED',
];

/** DER of the certificates of an answer to cacerts, one after another; the same object for the same chain. */
const chains = new WeakMap<object, Buffer>();

function chainOf({ driver, chain }: Ca): Buffer {
  const source = driver.chain();
  let der = chains.get(source);
  if (der === undefined) chains.set(source, (der = Buffer.concat(chain)));
  return der;
}

/** Notes when each connection began. */
export function observing(server: Server, observe: ObserveRequest): (answered: Answered) => void {
  const began = new WeakMap<Socket, number>();
  server.on('secureConnection', (socket: TLSSocket) => began.set(socket, performance.now()));
  return ({ route, exchange, presented, socket, answer, error }) => {
    const { ca, operation, namesLabel } = route;
    const certificates = presentedCertificates(presented);
    const issued = answer?.status === 200 ? exchange.serial : undefined;
    if (certificates === undefined && issued === undefined) return;
    const forwarded = presented.forwarded === true;
    const protocol = socket instanceof TLSSocket && !forwarded ? socket.getProtocol() : null;
    const rejected = error?.status === 401 && REJECTED.includes(error.code) ? error : undefined;
    observe({
      certificates,
      // A proxy's connection is older than that of its client.
      age: forwarded ? 0 : performance.now() - (began.get(socket) ?? performance.now()),
      took: exchange.ms,
      tls_version: protocol === 'TLSv1.2' || protocol === 'TLSv1.3' ? protocol : null,
      names_label: namesLabel,
      authenticated: exchange.method === 'mtls' && exchange.requester !== undefined,
      chain: operation.name === 'cacerts' && answer?.status === 200 ? chainOf(ca) : undefined,
      issued,
      rejected: rejected && { code: rejected.code, message: rejected.message },
    });
  };
}
