/** The names that a certificate gets: decided on authorization, and stored with a queued request. */
import { encodeGeneralNames, parseGeneralNames, type GeneralName } from '../pki/x509/general-name.ts';
import { parseName, type Name } from '../pki/x509/name.ts';

export interface CertifiedNames {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** Names from `san.add`: the operator's own, which policy does not check. */
  readonly added: readonly GeneralName[];
}

/** The stored form: JSON of base64 DER. */
export function formatCertifiedNames({ subject, subjectAltNames, added }: CertifiedNames): string {
  const names = (list: readonly GeneralName[]): string | null =>
    list.length === 0 ? null : encodeGeneralNames(list).toString('base64');
  return JSON.stringify([subject.der.toString('base64'), names(subjectAltNames), names(added)]);
}

/** @throws TypeError, DerError, SyntaxError for anything but the output of {@link formatCertifiedNames} */
export function parseCertifiedNames(text: string): CertifiedNames {
  const parts: unknown = JSON.parse(text);
  const at = (index: number): string | null => {
    const part: unknown = Array.isArray(parts) ? parts[index] : undefined;
    if (part !== null && typeof part !== 'string') throw new TypeError('the value is not a list of names');
    return part;
  };
  const names = (index: number): GeneralName[] => {
    const der = at(index);
    return der === null ? [] : parseGeneralNames(Buffer.from(der, 'base64'));
  };
  return { subject: parseName(Buffer.from(at(0) ?? '', 'base64')), subjectAltNames: names(1), added: names(2) };
}
