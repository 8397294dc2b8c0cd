/** Imports certificates that the store does not know, so that they can be revoked: the rules for every way in. */
import { certificateImported } from '../audit/applied-events.ts';
import type { Ca, CaRouter } from '../ca/router.ts';
import { certificateRow } from '../enrollment/certificate-row.ts';
import { badRequest, conflict, type EstuaryError } from '../errors.ts';
import { InputError } from '../pki/input-error.ts';
import { parsePemCertificates, type Certificate, isIssuedBy } from '../pki/x509/certificate.ts';
import { namesMatch } from '../pki/x509/name.ts';
import { isRecordOf, type CertificateRow, type CertificateStore } from '../store/certificate-store.ts';
import { accessEvent, actor, type AdminCall } from './admin-call.ts';

export interface ImportContext {
  readonly store: Pick<CertificateStore, 'getCertificates' | 'importCertificate'>;
  readonly cas: Pick<CaRouter, 'all'>;
}

/** `method` in the record of an imported certificate. Its `requester` is the administrator. */
const METHOD = 'import';

/**
 * @param pem one certificate
 * @param label of the CA that signed it, or the further label that it belongs to
 * @throws EstuaryError 400 if this CA did not sign it; 409 if the store has it; 500; 503
 */
export async function importCertificate(
  { store, cas }: ImportContext,
  call: AdminCall,
  { pem, label }: { readonly pem: string; readonly label: string },
): Promise<CertificateRow> {
  const ca = cas.all.find((ca) => ca.label === label);
  if (ca === undefined) throw badRequest('FIELD_INVALID', 'ca must be the label of a configured CA');
  const certificate = readOne(pem);
  const issuer = await issuerOf(ca, certificate);
  if (issuer === undefined) throw badRequest('CERTIFICATE_FOREIGN', 'pem must be a certificate that this CA signed');
  for (const row of await store.getCertificates(certificate.serialNumber))
    if (row.der.length > 0 && (await isRecordOf(row, { certificate, issuer }))) throw known();
  const by = actor(call);
  const owner = { requester: by.subject, method: METHOD, request_id: by.request_id };
  const row = certificateRow(certificate.der, { ...ca.issuedUnder, ...owner });
  const imported = await store.importCertificate(row, [
    accessEvent(call, 'success', `certificate ${row.serial} of ${ca.label} imported`),
    certificateImported(by, row),
  ]);
  if (imported === 'known') throw known();
  const [stored = row] = await store.getCertificates(row.serial, row.ca);
  return stored;
}

function readOne(pem: string): Certificate {
  try {
    const [certificate, ...more] = parsePemCertificates(pem);
    if (certificate !== undefined && more.length === 0) return certificate;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw badRequest('FIELD_INVALID', 'pem must be one certificate in PEM');
}

const known = (): EstuaryError =>
  conflict('CERTIFICATE_KNOWN', 'the store already has a certificate of this CA with this serial number');

/**
 * The CA's certificate with its current or former key; undefined for the CA's own certificates. @throws EstuaryError
 * 503
 */
async function issuerOf(ca: Ca, certificate: Certificate): Promise<Certificate | undefined> {
  if (namesMatch(certificate.subject, ca.certificate.subject)) return undefined;
  const own = [...ca.certificates, ...ca.renewalIssuers].filter(({ subject }) =>
    namesMatch(subject, ca.certificate.subject),
  );
  for (const issuer of own) if (await isIssuedBy(certificate, issuer)) return issuer;
  return undefined;
}
