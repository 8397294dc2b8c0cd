/** Checks the bytes of every certificate before the CA signs them. */
import { parseTbsCertificate, type TbsFields } from '../../pki/x509/certificate.ts';
import { DerError } from '../../pki/der/der.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import { LINT_RULES, type LintRule, type LintSubject } from './lint-rules.ts';

export interface LintFinding {
  /** The rule's name, or `der` if the bytes are not a TBSCertificate. */
  readonly rule: string;
  readonly blames: LintRule['blames'];
  readonly message: string;
}

interface Linted {
  readonly findings: readonly LintFinding[];
  readonly tbs?: TbsFields;
}

export interface LintContext extends Omit<LintSubject, 'tbs' | 'publicKey'> {
  /** The parsed key to certify; used only if its bytes are identical. */
  readonly publicKey?: PublicKeyInfo;
}

/** Runs every rule. @param der TBSCertificate to be signed @returns findings; empty if it may be signed */
export function lint(der: Buffer, context: LintContext): readonly LintFinding[] {
  return readAndLint(der, context).findings;
}

/** {@link lint}, with the parsed certificate if it could be parsed. */
export function readAndLint(der: Buffer, context: LintContext): Linted {
  const subject = orProblem(() => parseSubject(der, context));
  if (typeof subject === 'string') return { findings: [{ rule: 'der', blames: 'ca', message: subject }] };
  const findings: LintFinding[] = [];
  for (const { name: rule, blames, check } of LINT_RULES) {
    const message = orProblem(() => check(subject));
    if (message !== undefined) findings.push({ rule, blames, message });
  }
  return { findings, tbs: subject.tbs };
}

function parseSubject(der: Buffer, context: LintContext): LintSubject {
  const tbs = parseTbsCertificate(der);
  const { publicKey: known } = context;
  const publicKey = known?.spki.equals(tbs.spki) === true ? known : parsePublicKey(tbs.spki);
  return { ...context, tbs, publicKey };
}

function orProblem<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof DerError) return error.message;
    throw error;
  }
}
