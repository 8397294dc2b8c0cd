/** The certificates in files that the service depends on, and when each ends. */
import { formatName } from '../pki/x509/name.ts';
import { readCertificates } from './pem-files.ts';
import type { Config } from './schema.ts';

/** What a certificate is used for. */
export type CertificateUse =
  'tls' | 'admin_tls' | 'ca' | 'ocsp' | 'agent' | 'client_anchor' | 'admin_anchor' | 'dogtag_anchor' | 'cmc';

export interface CertificateEnd {
  readonly use: CertificateUse;
  /** The label of the CA that needs it; empty for the listeners'. */
  readonly ca: string;
  /** RFC 4514. */
  readonly subject: string;
  /** Lower-case hex. */
  readonly serial: string;
  /** Milliseconds since the epoch. */
  readonly notAfter: number;
}

interface Named {
  readonly use: CertificateUse;
  readonly ca: string;
  readonly file: string | undefined;
  /** The file's first certificate alone counts: the rest is what its issuer renews. */
  readonly leafOnly?: boolean;
}

function named({ tls, admin, cmc, ca: cas }: Config): Named[] {
  return [
    { use: 'tls', ca: '', file: tls.certificate },
    { use: 'client_anchor', ca: '', file: tls.client_auth.trust_anchors },
    { use: 'admin_tls', ca: '', file: admin.tls.certificate },
    { use: 'admin_anchor', ca: '', file: admin.tls.trust_anchors },
    { use: 'cmc', ca: '', file: cmc.certificate, leafOnly: true },
    ...cas.flatMap((ca): Named[] => [
      ...(ca.driver === 'dogtag'
        ? [
            { use: 'agent' as const, ca: ca.label, file: ca.dogtag.client_certificate, leafOnly: true },
            { use: 'dogtag_anchor' as const, ca: ca.label, file: ca.dogtag.trust_anchors },
          ]
        : [{ use: 'ocsp' as const, ca: ca.label, file: ca.ocsp?.certificate, leafOnly: true }]),
    ]),
  ];
}

/** The ends of all that the configuration names, but for the CAs' own, which their drivers know. @throws FileError */
export async function certificateEnds(config: Config): Promise<CertificateEnd[]> {
  const ends = await Promise.all(
    named(config).map(async ({ use, ca, file, leafOnly }) => {
      if (file === undefined) return [];
      const certificates = await readCertificates(file);
      return (leafOnly === true ? certificates.slice(0, 1) : certificates).map((certificate) =>
        endOf({ use, ca }, certificate),
      );
    }),
  );
  return ends.flat();
}

/** When a certificate ends, as the metrics tell it. */
export function endOf(
  { use, ca }: Pick<CertificateEnd, 'use' | 'ca'>,
  { subject, serialNumber, notAfter }: Awaited<ReturnType<typeof readCertificates>>[0],
): CertificateEnd {
  return { use, ca, subject: formatName(subject), serial: serialNumber, notAfter: notAfter.getTime() };
}
