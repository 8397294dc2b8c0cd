/** Arranges and checks the configured chain of a CA and its rollover certificates, once at start. */
import { verifyCertificateSignature, type Certificate, isIssuedBy, isSameCa } from './certificate.ts';
import { namesMatch, formatName } from './name.ts';
import { publicKeyProblem } from './public-key.ts';

export interface CaChain {
  /** The CA certificate first, each issued by the next, ending with the root if it is configured. */
  readonly path: readonly [Certificate, ...Certificate[]];
  /**
   * Certificates that link the path to earlier or later keys (RFC 4210 §4.4: OldWithOld, OldWithNew, NewWithOld), in
   * the given order.
   */
  readonly rollover: readonly Certificate[];
  /** The path ends below a root and no configured certificate continues it. */
  readonly rootMissing: boolean;
  /** Why these certificates do not form a chain; empty if they do. */
  readonly problems: readonly string[];
}

/**
 * Separates the configured certificates into path and rollover certificates. Skips duplicates. Validity dates are the
 * CA's health, which changes, and are not checked here.
 * @param chain path certificates in order; rollover certificates anywhere
 */
export async function arrangeChain(certificate: Certificate, chain: readonly Certificate[]): Promise<CaChain> {
  const others = withoutRepetitions(certificate, chain);
  const path = await pathOf(certificate, others);
  const rest = others.filter((other) => !path.includes(other));
  const top = path.at(-1) ?? certificate;
  const ends = await isRoot(top, rest);
  const linked = ends ? await linkedTo(path, rest) : [];
  const strangers = ends ? rest.filter((other) => !linked.includes(other)) : [];
  return {
    path,
    rollover: rest.filter((other) => linked.includes(other)),
    rootMissing: !ends && rest.length === 0,
    problems: [
      ...[...path, ...linked].flatMap((certificate) => caProblem(certificate) ?? []),
      ...pathLengthProblems(path),
      ...orderProblems(path, others),
      ...(ends || rest.length === 0 ? [] : [gapAbove(top, rest)]),
      ...strangers.map(
        (stranger) => `${quoted(stranger)} is neither above the CA nor linked to it by rollover certificates`,
      ),
    ],
  };
}

function withoutRepetitions(certificate: Certificate, chain: readonly Certificate[]): Certificate[] {
  return chain.filter(
    ({ der }, i) => !der.equals(certificate.der) && chain.findIndex((other) => other.der.equals(der)) === i,
  );
}

/**
 * The certificate and those above it, by names and signatures: after a rollover, its issuer may have another key than
 * the CA has now. Prefers a root to a certificate that only links two roots, which gives the shorter path.
 */
export async function pathOf(
  certificate: Certificate,
  others: readonly Certificate[],
): Promise<[Certificate, ...Certificate[]]> {
  const path: [Certificate, ...Certificate[]] = [certificate];
  for (let top: Certificate | undefined = certificate; top !== undefined && !(await isRoot(top, others));) {
    const issuers = await issuersOf(
      top,
      others.filter((other) => !path.includes(other)),
    );
    top = (await firstRoot(issuers, others)) ?? issuers[0];
    if (top !== undefined) path.push(top);
  }
  return path;
}

async function issuersOf(certificate: Certificate, candidates: readonly Certificate[]): Promise<Certificate[]> {
  const issuers: Certificate[] = [];
  for (const candidate of candidates) if (await isIssuedBy(certificate, candidate)) issuers.push(candidate);
  return issuers;
}

async function firstRoot(
  candidates: readonly Certificate[],
  others: readonly Certificate[],
): Promise<Certificate | undefined> {
  for (const candidate of candidates) if (await isRoot(candidate, others)) return candidate;
  return undefined;
}

/**
 * Whether the certificate is self-signed, not only self-issued as OldWithNew and NewWithOld are. A root's signature may
 * use an unsupported algorithm, so a self-issued certificate also counts as a root if no other key is known to have
 * signed it.
 */
async function isRoot(certificate: Certificate, others: readonly Certificate[]): Promise<boolean> {
  if (!namesMatch(certificate.issuer, certificate.subject)) return false;
  if (await verifyCertificateSignature(certificate, certificate)) return true;
  const { authorityKeyIdentifier: issuerKey, subjectKeyIdentifier: ownKey } = certificate;
  if (issuerKey !== undefined && ownKey !== undefined && !issuerKey.equals(ownKey)) return false;
  return (await issuersOf(certificate, others)).length === 0;
}

/** Why the path ends although certificates remain. */
function gapAbove(top: Certificate, rest: readonly Certificate[]): string {
  return rest.some(({ subject }) => namesMatch(top.issuer, subject))
    ? `the signature of ${quoted(top)} does not verify with the next certificate of the chain`
    : `${quoted(top)} was issued by "${formatName(top.issuer)}", not by the next certificate of the chain`;
}

/** The certificates that signatures connect to the path: clients trust the roots in /cacerts. */
async function linkedTo(path: readonly Certificate[], rest: readonly Certificate[]): Promise<Certificate[]> {
  const linked: Certificate[] = [];
  for (let before = -1; before < linked.length;) {
    before = linked.length;
    for (const certificate of rest)
      if (!linked.includes(certificate) && (await isLink(certificate, [...path, ...linked], rest)))
        linked.push(certificate);
  }
  return linked;
}

async function isLink(
  certificate: Certificate,
  known: readonly Certificate[],
  rest: readonly Certificate[],
): Promise<boolean> {
  const sameKey = known.some((ca) => isSameCa(ca, certificate));
  if (!(await isRoot(certificate, rest)))
    return (
      (await issuersOf(certificate, known)).length > 0 || (sameKey && (await issuersOf(certificate, rest)).length > 0)
    );
  if (sameKey) return true;
  for (const issued of known) if (await isIssuedBy(issued, certificate)) return true;
  return false;
}

/** RFC 5280 §4.2.1.9: self-issued certificates do not count. */
function pathLengthProblems(path: readonly Certificate[]): string[] {
  let below = 0;
  return path.flatMap((certificate, i) => {
    const { pathLength, subject, issuer } = certificate;
    const problem =
      i > 0 && pathLength !== undefined && pathLength < below
        ? [`${quoted(certificate)} allows ${pathLength} CAs below it, not ${below}`]
        : [];
    if (!namesMatch(subject, issuer)) below += 1;
    return problem;
  });
}

function orderProblems(path: readonly Certificate[], others: readonly Certificate[]): string[] {
  return path.slice(2).flatMap((issuer, i) => {
    const certificate = path[i + 1];
    return certificate !== undefined && others.indexOf(issuer) < others.indexOf(certificate)
      ? [`${quoted(issuer)} comes before ${quoted(certificate)}, which it issued`]
      : [];
  });
}

function caProblem(certificate: Certificate): string | undefined {
  const reason = caReason(certificate);
  return reason === undefined ? undefined : `${quoted(certificate)} ${reason}`;
}

function caReason(certificate: Certificate): string | undefined {
  if (certificate.version !== 3 || !certificate.isCa) return 'is not a CA certificate (basicConstraints)';
  if (certificate.keyUsage?.includes('keyCertSign') === false)
    return 'may not sign certificates (keyUsage without keyCertSign)';
  if (certificate.subject.rdns.length === 0) return 'has no subject';
  const problem = publicKeyProblem(certificate.publicKey);
  return problem?.kind === 'weak' ? `is weak: the public key ${problem.reason}` : undefined;
}

const quoted = ({ subject }: Certificate): string => `"${formatName(subject)}"`;
