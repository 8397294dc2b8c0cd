/**
 * The reason why a handshake of mode `required` refuses a certificate with a weak signature. Node names it "UNSPECIFIED",
 * and ends the connection, with the certificate, before any event: only the moment at which it sets the error remains.
 */
import { TLSSocket } from 'node:tls';
import { parseCertificate } from '../pki/x509/certificate.ts';
import { InputError } from '../pki/input-error.ts';
import { refusal } from '../auth/mtls/path-building.ts';

/** Certificates to look at. */
const MAX_CHAIN = 10;
const errors = new WeakMap<TLSSocket, unknown>();

Object.defineProperty(TLSSocket.prototype, 'authorizationError', {
  configurable: true,
  get(this: TLSSocket): unknown {
    return errors.get(this);
  },
  set(this: TLSSocket, error: unknown) {
    errors.set(this, (error === 'UNSPECIFIED' ? weakSignature(this) : undefined) ?? error);
  },
});

function weakSignature(socket: TLSSocket): string | undefined {
  try {
    let presented = socket.getPeerX509Certificate();
    for (let left = MAX_CHAIN; presented !== undefined && left > 0; left--) {
      const reason = refusal(parseCertificate(presented.raw));
      if (reason !== undefined) return reason;
      presented = presented.issuerCertificate;
    }
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  return undefined;
}
