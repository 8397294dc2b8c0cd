/** Compares what a remote CA issued with the request and the profile; nothing else is delivered. */
import type { ProfileConfig } from '../../config/schema/profile.ts';
import { DerError, parseDer, readBitString, Tag, unlessMalformed } from '../../pki/der/der.ts';
import { type Certificate, isAnchor, isIssuedBy, isSameCa } from '../../pki/x509/certificate.ts';
import { applicationPolicies, findExtension, type KeyUsage } from '../../pki/x509/extensions.ts';
import { formatGeneralName, sameGeneralNames } from '../../pki/x509/general-name.ts';
import { foldedRdns, formatName, type Name } from '../../pki/x509/name.ts';
import { OID, oidByName, oidName } from '../../pki/der/oids.ts';
import { parsePublicKey, samePublicKey } from '../../pki/x509/public-key.ts';
import type { IssuanceRequest } from '../driver.ts';

/** Maximum path length to a trust anchor. */
const MAX_PATH = 8;

/** Whether the certificate certifies this key, in any encoding of SubjectPublicKeyInfo. An unusable key is another one. */
export const isKey = ({ publicKey }: Pick<Certificate, 'publicKey'>, spki: Buffer): boolean =>
  unlessMalformed(() => samePublicKey(publicKey, parsePublicKey(spki)), false);

/** What a profile lets a remote CA certify. */
export type IssuedProfile = Pick<ProfileConfig, 'key_usage' | 'extended_key_usage'> &
  Partial<Pick<ProfileConfig, 'forward_extensions'>>;

/**
 * Why a certificate must not be delivered, or undefined. It may have fewer names, usages and purposes than authorized,
 * but no others.
 */
export function issuedProblem(
  certificate: Certificate,
  { spki, subject, subjectAltNames }: Pick<IssuanceRequest, 'spki' | 'subject' | 'subjectAltNames'>,
  profile: IssuedProfile,
  now: number,
): string | undefined {
  if (!isKey(certificate, spki)) return 'it certifies another public key';
  if (certificate.isCa) return 'it is a CA certificate';
  if (certificate.notAfter.getTime() < now) return 'it has already expired';
  const other = certificate.subjectAltNames.find(
    (name) => !subjectAltNames.some((allowed) => sameGeneralNames([name], [allowed])),
  );
  if (other !== undefined) return `its subjectAltName contains ${formatGeneralName(other)}`;
  return (
    subjectProblem(certificate.subject, subject, subjectAltNames) ??
    usageProblem(certificate, profile.key_usage) ??
    purposeProblem(certificate, profile.extended_key_usage) ??
    extensionProblem(certificate, profile.forward_extensions ?? [])
  );
}

const CA_USAGES: ReadonlySet<KeyUsage> = new Set(['keyCertSign', 'cRLSign']);

/** @param allowed empty: every usage of an end entity */
function usageProblem({ keyUsage = [] }: Certificate, allowed: readonly KeyUsage[]): string | undefined {
  const other = keyUsage.find((usage) => CA_USAGES.has(usage) || (allowed.length > 0 && !allowed.includes(usage)));
  return other && `its keyUsage contains ${other} (ca.profile.key_usage)`;
}

/** The purposes of netscapeCertType, by bit; no profile can allow the last four. */
const NETSCAPE_PURPOSES: readonly string[] = [
  ...[OID.clientAuth, OID.serverAuth, OID.emailProtection, OID.codeSigning],
  ...['reserved', 'SSL CA', 'S/MIME CA', 'object signing CA'],
];

function purposeProblem(certificate: Certificate, names: readonly string[]): string | undefined {
  const allowed = new Set(names.map((name) => oidByName(name) ?? name));
  try {
    const other = purposesOf(certificate).find((purpose) => !allowed.has(purpose));
    return other && `its purposes include ${oidName(other)} (ca.profile.extended_key_usage)`;
  } catch (error) {
    if (error instanceof DerError) return `its purposes cannot be read: ${error.message}`;
    throw error;
  }
}

/** Windows reads application policies, and OpenSSL netscapeCertType, like extKeyUsage. @throws DerError */
function purposesOf({ extKeyUsage = [], extensions }: Certificate): string[] {
  const policies = findExtension(extensions, OID.microsoftApplicationPolicies);
  const netscape = findExtension(extensions, OID.netscapeCertType);
  const bits = netscape && (readBitString(parseDer(netscape.value, Tag.BIT_STRING)).bytes[0] ?? 0);
  return [
    ...extKeyUsage,
    ...(policies === undefined ? [] : applicationPolicies(policies.value)),
    ...NETSCAPE_PURPOSES.filter((_, bit) => bits !== undefined && (bits & (0x80 >> bit)) !== 0),
  ];
}

/** Extensions that give a name or the right to issue, whatever they contain. */
const GRANTING: ReadonlyMap<string, string> = new Map([
  [OID.proxyCertInfo, 'lets it issue certificates (RFC 3820)'],
  [OID.microsoftSid, 'names an account in Active Directory'],
]);

function extensionProblem({ extensions }: Certificate, allowed: readonly string[]): string | undefined {
  const other = extensions.find(({ oid }) => GRANTING.has(oid) && !allowed.includes(oid));
  return other && `its extension ${oidName(other.oid)} ${GRANTING.get(other.oid) ?? ''}`;
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
      (issuer) =>
        (anchors.includes(issuer) ? isAnchor(issuer) : issuer.isCa) &&
        issuer.keyUsage?.includes('keyCertSign') !== false &&
        isValid(issuer) &&
        !above.includes(issuer),
    );
    let next: Certificate | undefined;
    for (const issuer of candidates) {
      const isAllowed = issuer.pathLength === undefined || issuer.pathLength >= above.length;
      if (next === undefined && isAllowed && (await isIssuedBy(last, issuer))) next = issuer;
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
  const chain = [own, ...(path ?? []).filter(({ der }) => !der.equals(own.der))];
  const further = others.filter(({ der }) => !chain.some((ca) => ca.der.equals(der)));
  const certified: Certificate[] = [...chain];
  for (const ca of further) if ((await pathToAnchor(ca, others, anchors, now)) !== undefined) certified.push(ca);
  // NewWithNew has the key of NewWithOld, which an anchor issued.
  const roots = further.filter((ca) => certified.some((known) => isSameCa(known, ca)));
  const trusted = [...anchors, ...roots];
  for (const ca of further) if (await pathToAnchor(ca, others, trusted, now)) chain.push(ca);
  return chain;
}

/** The issuing CA issued none of the certificates. Servers send them in any order (RFC 7030 §4.1.3). */
export async function issuerFirst(certificates: readonly Certificate[]): Promise<Certificate[]> {
  for (const ca of certificates) {
    let issues = false;
    for (const other of certificates) issues ||= await isIssuedBy(other, ca);
    if (!issues) return [ca, ...certificates.filter((other) => other !== ca)];
  }
  return [...certificates];
}
