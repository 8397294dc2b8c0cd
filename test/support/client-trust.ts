/** Snapshots of client trust from PEM and DER, as the configuration's files hold them. */
import { ClientTrust } from '../../src/auth/mtls/client-trust.ts';
import type { CrlSource, RevocationLists } from '../../src/auth/mtls/revocation-lists.ts';
import { parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseCertificateList } from '../../src/pki/x509/crl.ts';

export interface CrlFile {
  readonly name: string;
  readonly der: Buffer;
}

export interface ClientTrustFiles {
  /** PEM. */
  readonly trustAnchors: string;
  /** DER. */
  readonly intermediates?: readonly Buffer[];
  readonly crls?: readonly CrlFile[];
  readonly proxies?: readonly Certificate[];
  readonly crlsIncomplete?: boolean;
  readonly before?: RevocationLists;
  readonly own?: readonly Certificate[];
}

export function clientTrust({ trustAnchors, crls = [], ...rest }: ClientTrustFiles): Promise<ClientTrust> {
  const parsed = crls.map(({ name, der }): CrlSource => ({ name, list: parseCertificateList(der) }));
  return ClientTrust.create({ ...rest, anchors: parsePemCertificates(trustAnchors), crls: parsed });
}
