/** Lints: what is checked on the bytes of every certificate before the CA key touches them. One rule a file. */
import { parseTbsCertificate, type Certificate, type TbsFields } from '../../../pki/x509/certificate.ts';
import { DerError } from '../../../pki/der/der.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../../pki/x509/public-key.ts';
import { authorityKeyIdentifier } from './authority-key-identifier.ts';
import { basicConstraints } from './basic-constraints.ts';
import { certificatePolicies } from './certificate-policies.ts';
import { extKeyUsage } from './ext-key-usage.ts';
import { issuerName } from './issuer-name.ts';
import { keyUsage } from './key-usage.ts';
import { knownExtensions } from './known-extensions.ts';
import { locations } from './locations.ts';
import { nameConstraints } from './name-constraints.ts';
import { noDuplicateExtensions } from './no-duplicate-extensions.ts';
import { profileExtensions } from './profile-extensions.ts';
import { publicKey } from './public-key.ts';
import type { LintRule, LintSubject } from './rule.ts';
import { sanForm } from './san-form.ts';
import { serialNumber } from './serial-number.ts';
import { signatureAlgorithm } from './signature-algorithm.ts';
import { subjectAttributes } from './subject-attributes.ts';
import { subjectIsNotIssuer } from './subject-is-not-issuer.ts';
import { subjectKeyIdentifier } from './subject-key-identifier.ts';
import { subjectOrSan } from './subject-or-san.ts';
import { validityEncoding } from './validity-encoding.ts';
import { validityOrder } from './validity-order.ts';
import { validityPeriod } from './validity-period.ts';
import { validityWithinCa } from './validity-within-ca.ts';
import { version } from './version.ts';

export type { LintRule } from './rule.ts';

export const LINT_RULES: readonly LintRule[] = [
  version,
  serialNumber,
  signatureAlgorithm,
  issuerName,
  validityEncoding,
  validityOrder,
  validityWithinCa,
  validityPeriod,
  subjectAttributes,
  subjectOrSan,
  subjectIsNotIssuer,
  sanForm,
  publicKey,
  noDuplicateExtensions,
  knownExtensions,
  profileExtensions,
  certificatePolicies,
  basicConstraints,
  keyUsage,
  extKeyUsage,
  subjectKeyIdentifier,
  authorityKeyIdentifier,
  nameConstraints,
  locations,
];

export interface LintFinding {
  /** The rule's name, or `der` where the bytes are no TBSCertificate at all. */
  readonly rule: string;
  readonly blames: LintRule['blames'];
  readonly message: string;
}

export interface Linted {
  readonly findings: readonly LintFinding[];
  readonly tbs?: TbsFields;
}

export interface LintContext {
  readonly issuer: Certificate;
  /** DER AlgorithmIdentifier of the signature to come. */
  readonly signatureAlgorithm: Buffer;
  readonly maxValidityDays: number;
  /** The profile's own extensions by OID: whether each is critical. */
  readonly further?: ReadonlyMap<string, boolean>;
  /** The key that is to be certified, as it was read before: taken only for the same bytes. */
  readonly publicKey?: PublicKeyInfo;
}

/**
 * Runs every rule.
 * @param der TBSCertificate as it would be signed
 * @returns what is wrong; empty when it may be signed
 */
export function lint(der: Buffer, context: LintContext): readonly LintFinding[] {
  return readAndLint(der, context).findings;
}

/** {@link lint}, with what the rules were run on; without it where nothing could be read. */
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
