/** Certification paths (RFC 5280 §6.1) to a client's anchors, for certificates that a server lists or issues. */
import { type Certificate, isAnchor, verifyCertificateSignature, isIssuedBy } from '../../pki/x509/certificate.ts';
import { namesMatch } from '../../pki/x509/name.ts';

/** Hex of SHA-256 or SHA-512, with colons and in any case; otherwise undefined. */
export function readFingerprint(text: string): string | undefined {
  const hex = text
    .trim()
    .replace(/^sha-?(?:256|512):/i, '')
    .replace(/[:\s]/g, '')
    .toLowerCase();
  return /^(?:[0-9a-f]{64}|[0-9a-f]{128})$/.test(hex) ? hex : undefined;
}

/** Bounds the search; no PKI is deeper. */
const MAX_LENGTH = 8;

/**
 * The certificates from this one up to and including an anchor; undefined if there is no path. Checks signatures,
 * names, CA constraints, and validity including the certificate's own.
 */
export async function findPath(
  certificate: Certificate,
  anchors: readonly Certificate[],
  others: readonly Certificate[],
  now: number,
): Promise<readonly Certificate[] | undefined> {
  return search([certificate], anchors, others, now);
}

async function search(
  path: readonly Certificate[],
  anchors: readonly Certificate[],
  others: readonly Certificate[],
  now: number,
): Promise<readonly Certificate[] | undefined> {
  const top = path.at(-1);
  if (top === undefined || !isCurrent(top, now)) return undefined;
  if (anchors.some(({ der }) => der.equals(top.der))) return path;
  if (path.length >= MAX_LENGTH) return undefined;
  const candidates = [...anchors, ...others.filter((certificate) => !anchors.includes(certificate))];
  for (const issuer of candidates) {
    const isCa = anchors.includes(issuer) ? isAnchor(issuer) : issuer.isCa;
    if (path.includes(issuer) || !isCa || !mayIssue(issuer, path)) continue;
    if (!(await isIssuedBy(top, issuer))) continue;
    const found = await search([...path, issuer], anchors, others, now);
    if (found !== undefined) return found;
  }
  return undefined;
}

export const isCurrent = ({ notBefore, notAfter }: Certificate, now: number): boolean =>
  notBefore.getTime() <= now && now <= notAfter.getTime();

/** RFC 5280 §6.1.4: it may sign certificates, with sufficient path length. */
function mayIssue(issuer: Certificate, below: readonly Certificate[]): boolean {
  if (issuer.keyUsage?.includes('keyCertSign') === false) return false;
  const cas = below.slice(1).filter(({ subject, issuer: above }) => !namesMatch(subject, above));
  return issuer.pathLength === undefined || cas.length <= issuer.pathLength;
}

/** Signed with its own key, unlike OldWithNew and NewWithOld. */
export async function isSelfSigned(certificate: Certificate): Promise<boolean> {
  return (
    namesMatch(certificate.subject, certificate.issuer) && (await verifyCertificateSignature(certificate, certificate))
  );
}
