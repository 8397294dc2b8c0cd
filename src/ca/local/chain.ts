/** The certificates above a CA, checked once at start. */
import { verifyCertificateSignature, type Certificate } from '../../pki/certificate.ts';
import { formatName, namesEqual } from '../../pki/name.ts';
import { publicKeyProblem } from '../../pki/public-key.ts';

/** The chain without what repeats the CA's own certificate, or an earlier one of the chain. */
export function issuersOf(certificate: Certificate, chain: readonly Certificate[]): Certificate[] {
  return chain.filter(
    ({ der }, i) => !der.equals(certificate.der) && chain.findIndex((other) => other.der.equals(der)) === i,
  );
}

/**
 * Why these certificates make no CA: the CA certificate first, each issued by the next. Validity is not looked at: it
 * is the CA's health, and changes.
 */
export async function chainProblems(path: readonly Certificate[]): Promise<string[]> {
  const problems: string[] = [];
  for (const [i, certificate] of path.entries()) {
    const who = `"${formatName(certificate.subject)}"`;
    const reason = caProblem(certificate);
    if (reason !== undefined) problems.push(`${who} ${reason}`);
    const issuer = path[i + 1];
    if (issuer === undefined) continue;
    if (!namesEqual(certificate.issuer, issuer.subject))
      problems.push(`${who} was issued by "${formatName(certificate.issuer)}", not by the next of the chain`);
    else if (!(await verifyCertificateSignature(certificate, issuer)))
      problems.push(`the signature of ${who} does not verify with the next certificate of the chain`);
    if (issuer.pathLength !== undefined && issuer.pathLength < i)
      problems.push(`"${formatName(issuer.subject)}" allows ${issuer.pathLength} CAs below it, not ${i}`);
  }
  return problems;
}

function caProblem(certificate: Certificate): string | undefined {
  if (certificate.version !== 3 || !certificate.isCa) return 'is not a CA certificate (basicConstraints)';
  if (certificate.keyUsage?.includes('keyCertSign') === false)
    return 'may not sign certificates (keyUsage without keyCertSign)';
  if (certificate.subject.rdns.length === 0) return 'has no subject';
  const problem = publicKeyProblem(certificate.publicKey);
  return problem?.kind === 'weak' ? `is weak: the public key ${problem.reason}` : undefined;
}
