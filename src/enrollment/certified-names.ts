/** The names that a certificate gets: decided when its request was authorized, and kept with it while it waits. */
import { encodeGeneralNames, parseGeneralNames, type GeneralName } from '../pki/x509/general-name.ts';
import { parseName, type Name } from '../pki/x509/name.ts';

export interface CertifiedNames {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** Those of them that `san.add` has added: the operator's own, which policy does not judge. */
  readonly added: readonly GeneralName[];
}

/** As a queued request keeps them: JSON of the DER in base64. */
export function formatCertifiedNames({ subject, subjectAltNames, added }: CertifiedNames): string {
  const names = (list: readonly GeneralName[]): string | null =>
    list.length === 0 ? null : encodeGeneralNames(list).toString('base64');
  return JSON.stringify([subject.der.toString('base64'), names(subjectAltNames), names(added)]);
}

/** @throws TypeError, DerError, SyntaxError on what {@link formatCertifiedNames} has not written */
export function parseCertifiedNames(text: string): CertifiedNames {
  const parts: unknown = JSON.parse(text);
  const at = (index: number): string | null => {
    const part: unknown = Array.isArray(parts) ? parts[index] : undefined;
    if (part !== null && typeof part !== 'string') throw new TypeError('these are no names');
    return part;
  };
  const names = (index: number): GeneralName[] => {
    const der = at(index);
    return der === null ? [] : parseGeneralNames(Buffer.from(der, 'base64'));
  };
  return { subject: parseName(Buffer.from(at(0) ?? '', 'base64')), subjectAltNames: names(1), added: names(2) };
}
