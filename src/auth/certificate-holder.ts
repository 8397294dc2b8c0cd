/** Who the holder of a client certificate is: to people, and to the queue (contract §8.1). */
import { createHash } from 'node:crypto';
import type { Certificate } from '../pki/x509/certificate.ts';
import { comparableGeneralNames, formatGeneralName, sameGeneralNames } from '../pki/x509/general-name.ts';
import { isIssuedBy } from '../pki/x509/issued-by.ts';
import { foldedName } from '../pki/x509/name-matching.ts';
import { comparableName, formatName, namesEqual } from '../pki/x509/name.ts';

/** A certificate, and the CA that a validated path shows to have issued it. */
export interface CertificateHolder {
  readonly certificate: Certificate;
  /** Of which the name and the public key count, whatever certificate the path had of it. */
  readonly issuer: Certificate;
}

/** @param path validated; its end entity is the certificate. One that is an anchor itself stands for its own issuer */
export function holderOf({
  certificate,
  path,
}: {
  readonly certificate: Certificate;
  readonly path: readonly Certificate[];
}): CertificateHolder {
  return { certificate, issuer: path[1] ?? certificate };
}

/** A certificate is parsed once for many requests. */
const keys = new WeakMap<Certificate, { readonly issuer: Certificate; readonly key: string }>();

/** Whom a certificate names: its subject (RFC 4514), or its subject alternative names where that is empty. */
export function certificateHolder({ subject, subjectAltNames }: Certificate): string {
  return subject.rdns.length > 0 ? formatName(subject) : subjectAltNames.map(formatGeneralName).join(',');
}

/**
 * What tells one holder from every other: the subject for people, and a hash over the issuer's name and key, the subject and the
 * subjectAltName. Two certificates of one subject from different issuers, or with different SANs, are different requesters.
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

/** Whether two certificates of one CA, by name and key, name the same. */
export function isSameHolder(a: CertificateHolder, b: CertificateHolder): boolean {
  return holderKey(a) === holderKey(b);
}

/** Whether a certificate whose path nobody has validated is one of this holder: of the same names, and signed with its issuer's key. */
export async function isOfHolder({ certificate, issuer }: CertificateHolder, other: Certificate): Promise<boolean> {
  return (
    certificate.fingerprint === other.fingerprint ||
    (namesEqual(certificate.subject, other.subject) &&
      sameGeneralNames(certificate.subjectAltNames, other.subjectAltNames) &&
      (await isIssuedBy(other, issuer)))
  );
}
