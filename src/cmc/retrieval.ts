/** getCert and getCRL (RFC 5272 §6.9, §6.10). */
import type { Ca } from '../ca/router.ts';
import type { StatusSigner } from '../ca/driver.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import { parseCertificateList } from '../pki/x509/crl.ts';
import { namesMatch } from '../pki/x509/name.ts';
import { directoryName } from '../pki/x509/general-name.ts';
import type { CrlRow } from '../store/crl-store.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import type { GetCert, GetCrl } from '../pki/cmc/controls.ts';
import { badMessage, done, type PartOutcome, unknownCertificate } from './refusal.ts';

export interface CrlSource {
  current(ca: Ca, signer: StatusSigner): Promise<CrlRow>;
}

/** A certificate of the addressed CA. @throws CmcRefusal 400 badCertId */
export async function getCert(
  bodyPartID: BodyPartID,
  { issuerName, serialNumber }: GetCert,
  ca: Ca,
  store: CertificateStore,
): Promise<PartOutcome> {
  const issuer = directoryName(issuerName);
  for (const { der } of await store.getCertificates(serialNumber, ca.issuer.label))
    // A restored row may lack its certificate.
    if (der.length > 0 && issuer !== undefined && namesMatch(parseCertificate(der).issuer, issuer))
      return done(bodyPartID, { certificates: [der] });
  throw unknownCertificate(bodyPartID);
}

/**
 * The addressed CA's latest CRL, for all reasons and without a distribution point.
 * @throws CmcRefusal 400 badRequest for another CA's CRL, a past one, or if no CRL exists; EstuaryError from the signer
 */
export async function getCrl(
  bodyPartID: BodyPartID,
  { issuerName, time }: GetCrl,
  ca: Ca,
  crls: CrlSource,
): Promise<PartOutcome> {
  const { statusSigner } = ca.driver;
  if (statusSigner === undefined || !namesMatch(issuerName, ca.certificate.subject))
    throw badMessage(bodyPartID, 'This CA has no CRL of this issuer.');
  const crl = await crls.current(ca.issuer, statusSigner);
  if (time !== undefined && time < parseCertificateList(crl.der).thisUpdate)
    throw badMessage(bodyPartID, 'Only the latest CRL is kept.');
  return done(bodyPartID, { crls: [crl.der] });
}
