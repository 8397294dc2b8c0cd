/** With which certificate a client goes to its EST server, and whether it renews that one (RFC 7030 §3.3.2). */
import { parsePemCertificates, type Certificate } from '../pki/x509/certificate.ts';
import { InputError } from '../pki/input-error.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig } from './config/client-config.ts';
import type { ClientContext } from './context.ts';
import type { ClientIdentity } from './http/connection.ts';
import type { LiveCertificate } from './keep/certificate-folder.ts';
import { readPrivateKey } from './request/private-key.ts';
import { isForTlsClients } from './request/wanted.ts';
import { isCurrent } from './trust/path.ts';

export interface ChosenIdentity {
  /** undefined: none; a password or Kerberos has to do. */
  readonly identity: ClientIdentity | undefined;
  /** The certificate that is renewed with itself; undefined: a first enrolment. */
  readonly renews: Certificate | undefined;
}

/**
 * The present certificate where it is valid and good for TLS, which a renewal MUST use; otherwise the one to begin with (an IDevID).
 *
 * @throws ClientError
 */
export function chooseIdentity(
  config: CertificateConfig,
  live: LiveCertificate | undefined,
  now: number,
  context: ClientContext,
): ChosenIdentity {
  if (live !== undefined && isCurrent(live.certificate, now) && isForTlsClients(live.certificate))
    return { identity: { certificate: live.fullChain, privateKey: live.privateKey }, renews: live.certificate };
  return { identity: firstIdentity(config, context), renews: undefined };
}

function firstIdentity(
  { certificate, private_key: privateKey }: CertificateConfig,
  { disk }: ClientContext,
): ClientIdentity | undefined {
  if (certificate === undefined || privateKey === undefined) return undefined;
  const identity = { certificate: disk.read(certificate) ?? '', privateKey: disk.read(privateKey) ?? '' };
  readPrivateKey(identity.privateKey, privateKey);
  if (readCertificates(identity.certificate, certificate).length === 0)
    throw new ClientError('local', 'FILES_UNUSABLE', `${certificate} holds no certificate`);
  return identity;
}

/** @throws ClientError `FILES_UNUSABLE` */
export function readCertificates(pem: string, where: string): Certificate[] {
  try {
    return parsePemCertificates(pem);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new ClientError('local', 'FILES_UNUSABLE', `${where}: ${error.message}`, { cause: error });
  }
}
