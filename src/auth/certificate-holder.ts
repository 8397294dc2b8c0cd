/** Identifies the holder of a client certificate, for people and for the queue (docs/guides/names.md). */
import { createHash } from 'node:crypto';
import { isSameCertificate, type Certificate, isIssuedBy } from '../pki/x509/certificate.ts';
import { comparableGeneralNames, formatGeneralName, sameGeneralNames } from '../pki/x509/general-name.ts';
import { foldedName, comparableName, formatName, namesEqual } from '../pki/x509/name.ts';

/** A certificate, and its issuer in the validated path. */
export interface CertificateHolder {
  readonly certificate: Certificate;
  /** Only its name and public key count, in whichever certificate. */
  readonly issuer: Certificate;
}

/** @param path validated, starting with the certificate. An anchor is its own issuer */
export function holderOf({
  certificate,
  path,
}: {
  readonly certificate: Certificate;
  readonly path: readonly Certificate[];
}): CertificateHolder {
  return { certificate, issuer: path[1] ?? certificate };
}

/** A parsed certificate serves many requests. */
const keys = new WeakMap<Certificate, { readonly issuer: Certificate; readonly key: string }>();

/** The holder's name: the subject (RFC 4514), or the subjectAltNames if the subject is empty. */
export function certificateHolder({ subject, subjectAltNames }: Certificate): string {
  return subject.rdns.length > 0 ? formatName(subject) : subjectAltNames.map(formatGeneralName).join(',');
}

/**
 * Identifies a holder: the subject for people, and a hash of the issuer's name and key, the subject and the subjectAltName.
 * Two certificates with one subject but different issuers or SANs are different requesters.
 */
export function holderKey(holder: CertificateHolder): string {
  const { certificate, issuer } = holder;
  const known = keys.get(certificate);
  if (known?.issuer === issuer) return known.key;
  const parts = [
    foldedName(issuer.subject),
    issuer.spki.toString('base64'),
    comparableName(certificate.subject),
    comparableGeneralNames(certificate.subjectAltNames),
  ];
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  const key = `${certificateHolder(certificate)} sha256:${hash}`;
  keys.set(certificate, { issuer, key });
  return key;
}

/** Whether two certificates have the same issuer (name and key), subject and SANs. */
export function isSameHolder(a: CertificateHolder, b: CertificateHolder): boolean {
  return holderKey(a) === holderKey(b);
}

/**
 * Whether a certificate without a validated path belongs to this holder: the same names, and signed with the issuer's
 * key.
 */
export async function isOfHolder({ certificate, issuer }: CertificateHolder, other: Certificate): Promise<boolean> {
  return (
    isSameCertificate(certificate, other) ||
    (namesEqual(certificate.subject, other.subject) &&
      sameGeneralNames(certificate.subjectAltNames, other.subjectAltNames) &&
      (await isIssuedBy(other, issuer)))
  );
}
