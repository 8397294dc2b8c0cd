/** Expiry dates of configured certificates. */
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import type { KeyPair, Material } from './material.ts';

type CertificateUse =
  | 'tls'
  | 'admin_tls'
  | 'ca'
  | 'ocsp'
  | 'agent'
  | 'client_anchor'
  | 'admin_anchor'
  | 'dogtag_anchor'
  | 'upstream_anchor'
  | 'cmc'
  | 'store_client'
  | 'store_anchor';

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
    ...cas.flatMap((ca) =>
      ca.driver === 'dogtag'
        ? [
            ...ends('agent', firstOf(ca.client), ca.table.label),
            ...ends('dogtag_anchor', ca.trustAnchors, ca.table.label),
          ]
        : 'upstreamAnchors' in ca
          ? [
              ...ends('agent', firstOf(ca.client), ca.table.label),
              ...ends('upstream_anchor', [...ca.upstreamAnchors, ...(ca.trustAnchors ?? [])], ca.table.label),
            ]
          : ends('ocsp', firstOf(ca.ocsp), ca.table.label),
    ),
  ];
}

/** The key's own certificate; its issuer renews the others. */
function firstOf(pair: KeyPair | undefined): readonly Certificate[] {
  return pair === undefined ? [] : [pair.certificates[0]];
}

export function endOf(
  { use, ca }: Pick<CertificateExpiry, 'use' | 'ca'>,
  { subject, serialNumber, notAfter }: Certificate,
): CertificateExpiry {
  return { use, ca, subject: formatName(subject), serial: serialNumber, notAfter: notAfter.getTime() };
}
