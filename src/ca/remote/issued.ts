/** Compares what an upstream CA issued with the request; nothing else is delivered. */
import { type Certificate, isIssuedBy } from '../../pki/x509/certificate.ts';
import { formatGeneralName, sameGeneralNames } from '../../pki/x509/general-name.ts';
import { foldedRdns, namesMatch, formatName, type Name } from '../../pki/x509/name.ts';
import { OID } from '../../pki/der/oids.ts';
import { parsePublicKey, samePublicKey } from '../../pki/x509/public-key.ts';
import type { IssuanceRequest } from '../driver.ts';

/** Maximum path length to a trust anchor. */
const MAX_PATH = 8;

/** Whether the certificate certifies this key, in any encoding of SubjectPublicKeyInfo. */
export const isKey = ({ publicKey }: Pick<Certificate, 'publicKey'>, spki: Buffer): boolean =>
  samePublicKey(publicKey, parsePublicKey(spki));

/** Why a certificate must not be delivered, or undefined. It may have fewer names than authorized, but no others. */
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

/** Each RDN must be one of the request's, or a common name equal to one of the request's DNS names. */
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
 * The CA certificates above one, up to and including a trust anchor, all within their validity; undefined if there is
 * no such path.
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

/**
 * The chain to publish: the CA, those above it, and the rollover certificates of keys that an anchor certifies.
 * @param published the CA first
 * @returns undefined: the CA does not lead to an anchor
 */
export async function verifiedChain(
  [own, ...others]: readonly Certificate[],
  anchors: readonly Certificate[],
  now: number,
): Promise<Certificate[] | undefined> {
  if (own === undefined) return undefined;
  const path = await pathToAnchor(own, others, anchors, now);
  if (path === undefined && !anchors.some(({ der }) => der.equals(own.der))) return undefined;
  const chain = [own, ...(path ?? [])];
  const further = others.filter(({ der }) => !chain.some((one) => one.der.equals(der)));
  const certified: Certificate[] = [...chain];
  for (const one of further) if ((await pathToAnchor(one, others, anchors, now)) !== undefined) certified.push(one);
  // NewWithNew has the key of NewWithOld, which an anchor issued.
  const roots = further.filter((one) =>
    certified.some(({ subject, spki }) => namesMatch(subject, one.subject) && spki.equals(one.spki)),
  );
  const trusted = [...anchors, ...roots];
  for (const one of further)
    if (roots.includes(one) || (await pathToAnchor(one, others, trusted, now))) chain.push(one);
  return chain;
}
