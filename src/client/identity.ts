/** Chooses the certificate that authenticates a request, and whether the request is a renewal (RFC 7030 §3.3.2). */
import type { Certificate } from '../pki/x509/certificate.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import type { ClientIdentity } from './http/connection.ts';
import { type LiveCertificate, readCertificates, readPem } from './keep/certificate-folder.ts';
import { readPrivateKey, tlsClientProblem } from './request/csr.ts';
import { isKeyUri } from './token/key-uri.ts';
import { tokenPin } from './token/token.ts';
import type { TokenTlsKey } from './token/tls-key.ts';
import { isCurrent } from './trust/path.ts';

export interface ChosenIdentity {
  /** undefined: a password or Kerberos must authenticate the request. */
  readonly identity: ClientIdentity | undefined;
  /** The certificate that authenticates its own renewal; undefined: a first enrollment. */
  readonly renews: Certificate | undefined;
}

/**
 * The current certificate, which a renewal must use, if it is valid for TLS client authentication; otherwise the
 * initial one (an IDevID).
 * @throws ClientError
 */
export function chooseIdentity(
  config: CertificateConfig,
  live: LiveCertificate | undefined,
  now: number,
  context: ClientContext,
): ChosenIdentity {
  if (live !== undefined && isCurrent(live.certificate, now) && tlsClientProblem(live.certificate) === undefined)
    return ownIdentity(config, live, context);
  return { identity: firstIdentity(config, context), renews: undefined };
}

/** The current certificate after its expiry, which some servers accept for a renewal; at most one. */
export function expiredIdentity(
  config: CertificateConfig,
  live: LiveCertificate,
  now: number,
  context: ClientContext,
): readonly ChosenIdentity[] {
  const isExpired = live.certificate.notAfter.getTime() < now && tlsClientProblem(live.certificate) === undefined;
  return isExpired ? [ownIdentity(config, live, context)] : [];
}

const ownIdentity = (
  config: CertificateConfig,
  { certificate, fullChain, privateKey }: LiveCertificate,
  context: ClientContext,
): ChosenIdentity => ({
  identity: { certificate: fullChain, privateKey: forTls(privateKey, config, context) },
  renews: certificate,
});

function firstIdentity(config: CertificateConfig, context: ClientContext): ClientIdentity | undefined {
  const { certificate: file, private_key: key } = config;
  if (file === undefined || key === undefined) return undefined;
  const certificate = readPem(context.disk, file) ?? '';
  const text = isKeyUri(key) ? key : (context.disk.read(key) ?? '');
  if (!isKeyUri(text)) readPrivateKey(text, key);
  if (readCertificates(certificate, file).length === 0)
    throw new ClientError('local', 'FILES_UNUSABLE', `${file} contains no certificate`);
  return { certificate, privateKey: forTls(text, config, context) };
}

/** @param key PEM, or a URI */
function forTls(key: string, { token }: CertificateConfig, context: ClientContext): string | TokenTlsKey {
  if (!isKeyUri(key)) return key;
  if (token === undefined)
    throw new ClientError('local', 'KEY_UNUSABLE', 'the key is in a token, and no token is configured ([token])');
  return { uri: key.trim(), token, pin: () => tokenPin(token, context) };
}
