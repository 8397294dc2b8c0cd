/** What the store knows about a client certificate. A revocation there always counts, regardless of any CRL. */
import { unauthorized } from '../../errors.ts';
import { isRecordOf, type IssuedCertificate } from '../../store/certificate-issuer.ts';
import type { CertificateStore } from '../../store/certificate-store.ts';

/** @throws EstuaryError 401 if the store knows the certificate as revoked; 500 or 503 if the store cannot answer */
export async function checkNotRevokedHere(
  store: Pick<CertificateStore, 'findRevoked'>,
  presented: IssuedCertificate,
): Promise<void> {
  for (const row of await store.findRevoked(presented.certificate.serialNumber)) {
    if (!(await isRecordOf(row, presented))) continue;
    throw unauthorized('CLIENT_CERTIFICATE_REVOKED', 'client certificate revoked', {
      detail: `${row.ca} ${row.serial} is revoked in the store`,
    });
  }
}

/**
 * Whether the store has recorded the certificate.
 *
 * @throws EstuaryError 500 or 503 if the store cannot answer
 */
export async function isRecorded(
  store: Pick<CertificateStore, 'getCertificates'>,
  presented: IssuedCertificate,
): Promise<boolean> {
  for (const row of await store.getCertificates(presented.certificate.serialNumber))
    if (await isRecordOf(row, presented)) return true;
  return false;
}
