/** What an upstream CA issued, compared with what was asked for: nothing else leaves. */
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatGeneralName, sameGeneralNames } from '../../pki/x509/general-name.ts';
import { foldedRdns, isIssuedBy } from '../../pki/x509/name-matching.ts';
import { formatName, type Name } from '../../pki/x509/name.ts';
import { OID } from '../../pki/der/oids.ts';
import { parsePublicKey, samePublicKey } from '../../pki/x509/public-key.ts';
import type { IssuanceRequest } from '../driver.ts';

/** The longest path to a trust anchor. */
const MAX_PATH = 8;

/** Whether the certificate certifies this key, however its SubjectPublicKeyInfo is encoded. */
export const isKey = ({ publicKey }: Pick<Certificate, 'publicKey'>, spki: Buffer): boolean =>
  samePublicKey(publicKey, parsePublicKey(spki));

/** Why a certificate must not be delivered, or undefined. It may have fewer names than authorized, never others. */
export function issuedProblem(
  certificate: Certificate,
  { spki, subject, subjectAltNames }: Pick<IssuanceRequest, 'spki' | 'subject' | 'subjectAltNames'>,
): string | undefined {
  if (!isKey(certificate, spki)) return 'it certifies another public key';
  if (certificate.isCa) return 'it is a CA certificate';
  const signs = certificate.keyUsage?.find((usage) => usage === 'keyCertSign' || usage === 'cRLSign');
  if (signs !== undefined) return `its keyUsage contains ${signs}`;
  const other = certificate.subjectAltNames.find(
    (name) => !subjectAltNames.some((allowed) => sameGeneralNames([name], [allowed])),
  );
  if (other !== undefined) return `its subjectAltName contains ${formatGeneralName(other)}`;
  return subjectProblem(certificate.subject, subject, subjectAltNames);
}

/** Each RDN of the subject is one of the request's, or a common name that equals one of the request's DNS names. */
function subjectProblem(
  issued: Name,
  asked: Name,
  subjectAltNames: IssuanceRequest['subjectAltNames'],
): string | undefined {
  const allowed = new Set(foldedRdns(asked));
  const hosts = new Set(subjectAltNames.flatMap((name) => (name.kind === 'dns' ? [name.value.toLowerCase()] : [])));
  const folded = foldedRdns(issued);
  const other = issued.rdns.find((rdn, index) => {
    const [attribute, ...more] = rdn;
    const isHost = attribute?.type === OID.commonName && more.length === 0 && hosts.has(attribute.text.toLowerCase());
    return !isHost && !allowed.has(folded[index] ?? '');
  });
  return other === undefined ? undefined : `its subject is "${formatName(issued)}", not "${formatName(asked)}"`;
}

/**
 * The certificates above one up to a trust anchor, the anchor included; undefined if there is no such path. Each is a CA certificate
 * in its validity.
 */
export async function pathToAnchor(
  certificate: Certificate,
  others: readonly Certificate[],
  anchors: readonly Certificate[],
  now: number,
): Promise<Certificate[] | undefined> {
  const isValid = ({ notBefore, notAfter }: Certificate): boolean =>
    notBefore.getTime() <= now && now <= notAfter.getTime();
  const above: Certificate[] = [];
  for (let last = certificate; above.length < MAX_PATH;) {
    const candidates = [...anchors, ...others].filter(
      (one) => one.isCa && one.keyUsage?.includes('keyCertSign') !== false && isValid(one) && !above.includes(one),
    );
    let next: Certificate | undefined;
    for (const one of candidates) {
      const isAllowed = one.pathLength === undefined || one.pathLength >= above.length;
      if (next === undefined && isAllowed && (await isIssuedBy(last, one))) next = one;
    }
    if (next === undefined) return undefined;
    above.push(next);
    if (anchors.includes(next)) return above;
    last = next;
  }
  return undefined;
}
