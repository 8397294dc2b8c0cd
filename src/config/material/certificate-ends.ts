/** Expiry dates of configured certificates. */
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { firstOf } from './ca.ts';
import type { CaCertificateUse, Material } from './material.ts';

type CertificateUse =
  | CaCertificateUse
  | 'tls'
  | 'admin_tls'
  | 'ca'
  | 'client_anchor'
  | 'admin_anchor'
  | 'cmc'
  | 'store_client'
  | 'store_anchor';

const CA_USES = ['agent', 'dogtag_anchor', 'upstream_anchor', 'ocsp'] as const;

export interface CertificateExpiry {
  readonly use: CertificateUse;
  /** Label of the CA that needs it; empty for listeners. */
  readonly ca: string;
  /** RFC 4514. */
  readonly subject: string;
  readonly serial: string;
  readonly notAfter: number;
}

/** All configured certificates, except the CAs' own, which their drivers report. */
export function certificateExpiries(material: Material): CertificateExpiry[] {
  const { tls, adminTls, clientTrust, adminTrust, cmc, cas, storeTls } = material;
  const ends = (use: CertificateUse, certificates: readonly Certificate[] = [], ca = ''): CertificateExpiry[] =>
    certificates.map((certificate) => endOf({ use, ca }, certificate));
  return [
    ...ends('tls', tls?.certificates),
    ...ends('client_anchor', clientTrust?.anchors),
    ...ends('admin_tls', adminTls === tls ? [] : adminTls?.certificates),
    ...ends('admin_anchor', adminTrust?.anchors),
    ...ends('cmc', firstOf(cmc.responder)),
    ...ends('store_client', firstOf(storeTls?.client)),
    ...ends('store_anchor', storeTls?.trustAnchors),
    ...cas.flatMap(({ table, expiring }) => CA_USES.flatMap((use) => ends(use, expiring[use], table.label))),
  ];
}

export function endOf(
  { use, ca }: Pick<CertificateExpiry, 'use' | 'ca'>,
  { subject, serialNumber, notAfter }: Certificate,
): CertificateExpiry {
  return { use, ca, subject: formatName(subject), serial: serialNumber, notAfter: notAfter.getTime() };
}
