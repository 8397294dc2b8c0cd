/** What our own store says of a client certificate. Revocation there always wins, whatever a CRL says (contract §3). */
import { unauthorized } from '../../errors.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { isOfIssuer } from '../../store/certificate-issuer.ts';
import type { CertificateStore } from '../../store/certificate-store.ts';

/**
 * Looks the certificate up by issuer and serial number, not by its fingerprint: of an ECDSA signature (r, s) there is
 * always a second form (r, n − s), so the holder of a revoked certificate could present it under another fingerprint.
 *
 * @throws EstuaryError 401 when the store knows it as revoked; 500 or 503 when the store cannot say
 */
export async function checkNotRevokedHere(
  store: Pick<CertificateStore, 'findRevoked'>,
  certificate: Certificate,
): Promise<void> {
  for (const row of await store.findRevoked(certificate.serialNumber)) {
    if (!isOfIssuer(row, certificate.issuer)) continue;
    throw unauthorized('CLIENT_CERTIFICATE_REVOKED', 'client certificate revoked', {
      detail: `${row.ca} ${row.serial} is revoked in our store`,
    });
  }
}

/**
 * Whether this server issued it, as its store knows; by issuer and serial number for the same reason.
 *
 * @throws EstuaryError 500 or 503 when the store cannot say
 */
export async function isIssuedHere(
  store: Pick<CertificateStore, 'getCertificates'>,
  certificate: Certificate,
): Promise<boolean> {
  const rows = await store.getCertificates(certificate.serialNumber);
  return rows.some((row) => isOfIssuer(row, certificate.issuer));
}
