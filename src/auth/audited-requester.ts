/** What the audit log says about an authenticated requester. */
import type { AuditedRequester } from '../audit/event.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatGeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import type { Identity } from './identity.ts';

type FromCertificate = Required<Pick<AuditedRequester, 'requester_issuer' | 'requester_sans'>>;

/** One certificate occurs in many requests, and each request in several records. */
const known = new WeakMap<Certificate, FromCertificate>();

/** Who, by which method and, for a certificate, what distinguishes it from others with the same subject. */
export function auditedRequester(identity: Identity): AuditedRequester & { readonly subject: string } {
  const { method, display: subject } = identity;
  const certificate = 'certificate' in identity ? identity.certificate : undefined;
  return { subject, method, ...(certificate === undefined ? {} : fromCertificate(certificate)) };
}

function fromCertificate(certificate: Certificate): FromCertificate {
  let names = known.get(certificate);
  if (names === undefined) {
    names = {
      requester_issuer: formatName(certificate.issuer),
      requester_sans: certificate.subjectAltNames.map(formatGeneralName),
    };
    known.set(certificate, names);
  }
  return names;
}
