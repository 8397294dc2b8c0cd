/** Checks the bytes of every certificate before the CA signs them. */
import { parseTbsCertificate, type Certificate, type TbsFields } from '../../pki/x509/certificate.ts';
import { DerError } from '../../pki/der/der.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import type { Authority } from './tbs.ts';
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

export interface LintContext {
  readonly issuer: Certificate;
  /** DER AlgorithmIdentifier of the future signature. */
  readonly signatureAlgorithm: Buffer;
  readonly maxValidityDays: number;
  /** The profile's own extensions by OID: whether each is critical. */
  readonly further?: ReadonlyMap<string, boolean>;
  /** Set if the certificate must be that of a CA. */
  readonly authority?: Authority | undefined;
  /** The parsed key to certify; used only if its bytes are identical. */
  readonly publicKey?: PublicKeyInfo;
}

/** Runs every rule. @param der TBSCertificate to be signed @returns findings; empty if it may be signed */
export function lint(der: Buffer, context: LintContext): readonly LintFinding[] {
  return readAndLint(der, context).findings;
}

/** {@link lint}, with the parsed certificate if it could be parsed. */
export function readAndLint(der: Buffer, context: LintContext): Linted {
  const subject = parseSubject(der, context);
  if (typeof subject === 'string') return { findings: [{ rule: 'der', blames: 'ca', message: subject }] };
  const findings: LintFinding[] = [];
  for (const rule of LINT_RULES) {
    const message = run(rule, subject);
    if (message !== undefined) findings.push({ rule: rule.name, blames: rule.blames, message });
  }
  return { findings, tbs: subject.tbs };
}

function parseSubject(der: Buffer, context: LintContext): LintSubject | string {
  try {
    const tbs = parseTbsCertificate(der);
    const { publicKey: known } = context;
    const publicKey = known?.spki.equals(tbs.spki) === true ? known : parsePublicKey(tbs.spki);
    return { ...context, tbs, publicKey };
  } catch (error) {
    if (error instanceof DerError) return error.message;
    throw error;
  }
}

function run(rule: LintRule, subject: LintSubject): string | undefined {
  try {
    return rule.check(subject);
  } catch (error) {
    if (error instanceof DerError) return error.message;
    throw error;
  }
}
