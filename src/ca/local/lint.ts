/** Checks the bytes of every certificate before the CA signs them. */
import { DerError, sequence, time } from '../../pki/der/der.ts';
import { OID, oidName, firstRepeated } from '../../pki/der/oids.ts';
import { requireDer } from '../../pki/der/element.ts';
import { subjectProblem } from '../../pki/x509/attribute-syntax.ts';
import {
  parseCertificatePolicies,
  duplicateExtension,
  findExtension,
  type KeyUsage,
  MAX_EXTENSION_LENGTH,
  parseAuthorityInfoAccess,
  parseAuthorityKeyIdentifier,
  parseBasicConstraints,
  parseCrlDistributionPoints,
  parseExtKeyUsage,
  parseKeyUsage,
  parseSubjectKeyIdentifier,
  reservedExtension,
} from '../../pki/x509/extensions.ts';
import { type Certificate, type TbsFields, parseTbsCertificate } from '../../pki/x509/certificate.ts';
import {
  formatGeneralName,
  generalNameProblem,
  parseGeneralNames,
  underscoreProblem,
} from '../../pki/x509/general-name.ts';
import { nameConstraintProblem, parseNameConstraints } from '../../pki/x509/name-constraints.ts';
import { issuedName, namesMatch } from '../../pki/x509/name.ts';
import {
  type PublicKeyInfo,
  publicKeyProblem,
  samePublicKey,
  subjectKeyIdentifier,
  parsePublicKey,
} from '../../pki/x509/public-key.ts';
import { algorithmFitsKey, parseSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { altNamesInSubject } from '../../pki/x509/subject-names.ts';
import { usagesOfKey } from './key-usage.ts';
import type { Authority } from './tbs.ts';

/** A TBSCertificate parsed from the bytes to be signed, and its context. */
interface LintSubject {
  readonly tbs: TbsFields;
  readonly publicKey: PublicKeyInfo;
  readonly issuer: Certificate;
  /** DER AlgorithmIdentifier outside the signed part of the finished certificate. */
  readonly signatureAlgorithm: Buffer;
  readonly maxValidityDays: number;
  /** `ca.profile.san.dns_underscore`. */
  readonly underscores?: boolean | undefined;
  /** The profile's own extensions by OID: whether each is critical. */
  readonly further?: ReadonlyMap<string, boolean>;
  /** Set if the certificate must be that of a CA. */
  readonly authority?: Authority | undefined;
}

interface LintRule {
  readonly name: string;
  readonly source: string;
  /** Cause of a finding: the request (400), or this CA's operation or configuration (500). */
  readonly blames: 'request' | 'ca';
  /** The problem, or undefined. May throw DerError for unparsable content. */
  readonly check: (subject: LintSubject) => string | undefined;
}

function extensionValue<T>(subject: LintSubject, oid: string, parse: (value: Buffer) => T): T | undefined {
  const extension = findExtension(subject.tbs.extensions, oid);
  return extension && parse(extension.value);
}

/** Extension → required criticality; undefined: another rule decides. */
const KNOWN: ReadonlyMap<string, boolean | undefined> = new Map<string, boolean | undefined>([
  [OID.basicConstraints, true],
  [OID.keyUsage, true],
  [OID.extKeyUsage, false],
  [OID.subjectKeyIdentifier, false],
  [OID.authorityKeyIdentifier, false],
  [OID.subjectAltName, undefined],
  [OID.cRLDistributionPoints, false],
  [OID.authorityInfoAccess, false],
  [OID.certificatePolicies, false],
]);

const blaming =
  (blames: LintRule['blames']) =>
  (name: string, source: string, check: LintRule['check']): LintRule => ({ name, source, blames, check });
const ofRequest = blaming('request');
const ofCa = blaming('ca');

export const LINT_RULES: readonly LintRule[] = [
  ofCa('version', 'RFC 5280 §4.1.2.1', ({ tbs }) =>
    tbs.version === 3 ? undefined : 'a certificate with extensions must be of version 3',
  ),
  ofCa('serial-number', 'RFC 5280 §4.1.2.2', ({ tbs: { serialOctets } }) => {
    if (serialOctets.readUInt8(0) >= 0x80 || serialOctets.every((octet) => octet === 0))
      return 'the serial number must be positive';
    if (serialOctets.length > 20) return 'the serial number must not be longer than 20 octets';
    return serialOctets.length < 8 ? 'the serial number must have 64 bits or more' : undefined;
  }),
  ofCa('signature-algorithm', 'RFC 5280 §4.1.1.2', ({ tbs, issuer, signatureAlgorithm: outer }) => {
    if (!tbs.signature.equals(outer)) return 'the signature algorithm inside must be the one outside';
    return algorithmFitsKey(parseSignatureAlgorithm(outer), issuer.publicKey)
      ? undefined
      : "the signature algorithm must be one of the CA key's";
  }),
  ofCa('issuer-name', 'RFC 5280 §4.1.2.4', ({ tbs, issuer }) => {
    if (tbs.issuer.rdns.length === 0) return 'the issuer must not be empty';
    return tbs.issuer.der.equals(issuer.subject.der)
      ? undefined
      : "the issuer must be the CA certificate's subject, byte for byte";
  }),
  ofCa('validity-encoding', 'RFC 5280 §4.1.2.5', ({ tbs: { notBefore, notAfter, validity } }) =>
    validity.equals(sequence(time(notBefore), time(notAfter)))
      ? undefined
      : 'times must be UTCTime through 2049 and GeneralizedTime from 2050 on, with seconds, without fraction and in UTC',
  ),
  ofCa('validity-order', 'RFC 5280 §4.1.2.5', ({ tbs }) =>
    tbs.notBefore < tbs.notAfter ? undefined : 'notBefore must be before notAfter',
  ),
  ofCa('validity-within-ca', 'RFC 5280 §6.1.3', ({ tbs, issuer }) =>
    tbs.notBefore >= issuer.notBefore && tbs.notAfter <= issuer.notAfter
      ? undefined
      : 'the validity must lie within that of the CA certificate',
  ),
  ofCa('validity-period', 'ca.profile.max_validity_days', ({ tbs, maxValidityDays }) => {
    // notBefore and notAfter are inclusive (RFC 5280 §4.1.2.5).
    const seconds = (tbs.notAfter.getTime() - tbs.notBefore.getTime()) / 1000 + 1;
    return seconds <= maxValidityDays * 86_400 ? undefined : `the validity must not exceed ${maxValidityDays} days`;
  }),
  ofRequest('subject-attributes', 'RFC 5280 §4.1.2.6, appendix A.1, X.501 §9.3', ({ tbs: { subject } }) => {
    const problem = subjectProblem(subject);
    if (problem !== undefined) return `the subject ${problem}`;
    return issuedName(subject) === subject ? undefined : 'the subject must have the string types of RFC 5280, in order';
  }),
  ofRequest('subject-or-san', 'RFC 5280 §4.1.2.6, §4.2.1.6', ({ tbs }) => {
    const san = findExtension(tbs.extensions, OID.subjectAltName);
    if (tbs.subject.rdns.length > 0)
      return san?.critical === true ? 'subjectAltName must not be critical if the subject is not empty' : undefined;
    if (san === undefined) return 'an empty subject needs a subjectAltName';
    return san.critical ? undefined : 'subjectAltName must be critical when the subject is empty';
  }),
  ofRequest('subject-is-not-issuer', 'RFC 5280 §3.2, §6.1', ({ tbs, issuer }) =>
    namesMatch(tbs.subject, issuer.subject)
      ? "the subject must differ from the CA's: the certificate would look self-issued"
      : undefined,
  ),
  ofRequest('san-form', 'RFC 5280 §4.2.1.6', (subject) => {
    for (const name of extensionValue(subject, OID.subjectAltName, parseGeneralNames) ?? []) {
      if (name.kind === 'other') return 'subjectAltName may contain only names of the kinds that a profile can allow';
      const problem = generalNameProblem(name) ?? (subject.underscores === true ? undefined : underscoreProblem(name));
      if (problem !== undefined) return `subjectAltName ${JSON.stringify(formatGeneralName(name))} ${problem}`;
    }
    return undefined;
  }),
  ofRequest('public-key', 'RFC 5280 §4.1.2.7, NIST SP 800-57 part 1 §5.6.1', ({ publicKey: key, issuer }) => {
    if (samePublicKey(key, issuer.publicKey)) return "the public key must not be the CA's own";
    const problem = publicKeyProblem(key);
    return problem && `the public key ${problem.reason}`;
  }),
  ofCa('no-duplicate-extensions', 'RFC 5280 §4.2', ({ tbs }) => {
    const twice = duplicateExtension(tbs.extensions);
    return twice === undefined ? undefined : `the extension ${oidName(twice)} must not occur twice`;
  }),
  ofCa('known-extensions', 'RFC 5280 §4.2.1, §4.2.2', ({ tbs, further, authority }) => {
    for (const { oid, critical } of tbs.extensions) {
      if (oid === OID.nameConstraints && authority !== undefined) continue;
      const isOfProfile = further?.has(oid) === true && reservedExtension(oid) === undefined;
      if (!KNOWN.has(oid) && !isOfProfile) return `the extension ${oidName(oid)} is not one that this CA issues`;
      const expected = isOfProfile ? further.get(oid) : KNOWN.get(oid);
      if (expected !== undefined && expected !== critical)
        return `the extension ${oidName(oid)} must ${expected ? '' : 'not '}be critical`;
    }
    return undefined;
  }),
  /** Fixed profile extensions were checked at start, so a finding concerns a copied one. */
  ofRequest('profile-extensions', 'RFC 5280 §4.2, ca.profile.extensions', ({ tbs }) => {
    for (const { oid, value } of tbs.extensions) {
      if (reservedExtension(oid) !== undefined) continue;
      if (value.length > MAX_EXTENSION_LENGTH)
        return `the extension ${oidName(oid)} must not have more than ${MAX_EXTENSION_LENGTH} octets`;
      requireDer(value, oidName(oid));
    }
    return undefined;
  }),
  ofCa('certificate-policies', 'RFC 5280 §4.2.1.4', (subject) => {
    const policies = extensionValue(subject, OID.certificatePolicies, parseCertificatePolicies);
    if (policies === undefined) return undefined;
    const oids = policies.map(({ oid }) => oid);
    const twice = firstRepeated(oids);
    if (twice !== undefined) return `the policy ${twice} must not occur twice`;
    const wrong = policies.find(
      ({ cps }) => cps !== undefined && generalNameProblem({ kind: 'uri', value: cps }) !== undefined,
    )?.cps;
    if (wrong !== undefined) return `${JSON.stringify(wrong)} is not a valid CPS URI`;
    const { extensions } = subject.issuer;
    const own = findExtension(extensions, OID.certificatePolicies);
    // With policy mappings the CA's own policies have other OIDs.
    if (own === undefined || findExtension(extensions, OID.policyMappings) !== undefined) return undefined;
    const allowed = parseCertificatePolicies(own.value).map(({ oid }) => oid);
    if (allowed.includes(OID.anyPolicy)) return undefined;
    const beyond = oids.find((oid) => !allowed.includes(oid));
    return beyond && `the CA certificate does not contain the policy ${beyond}`;
  }),
  ofCa('basic-constraints', 'RFC 5280 §4.2.1.9', (subject) => {
    const constraints = extensionValue(subject, OID.basicConstraints, parseBasicConstraints);
    if (constraints === undefined) return 'basicConstraints must be present';
    const { ca, pathLength } = constraints;
    const { authority, issuer } = subject;
    if (authority !== undefined) {
      if (!ca || pathLength !== authority.pathLength)
        return `a CA with the path length ${authority.pathLength} is required`;
      return issuer.pathLength !== undefined && pathLength >= issuer.pathLength
        ? `the path length must be less than ${issuer.pathLength}, that of the CA certificate`
        : undefined;
    }
    if (ca) return 'an end entity must not be a CA';
    return pathLength === undefined ? undefined : 'pathLenConstraint is for CAs only';
  }),
  ofCa('constraints-of-ca', 'RFC 5280 §4.2.1.10, ca.profile.certificate_authority', ({ tbs, authority }) => {
    if (authority === undefined) return undefined;
    const found = findExtension(tbs.extensions, OID.nameConstraints);
    return found?.critical === true && found.value.equals(authority.nameConstraints)
      ? undefined
      : 'nameConstraints must be those of the profile, and critical';
  }),
  ofRequest('subject-of-ca', 'RFC 5280 §4.1.2.6', ({ tbs, authority }) =>
    authority !== undefined && tbs.subject.rdns.length === 0 ? 'the subject of a CA must not be empty' : undefined,
  ),
  ofCa('key-usage', 'RFC 5280 §4.2.1.3, RFC 3279 §2.3, RFC 5480 §3, RFC 8410 §5', (subject) => {
    const usages = extensionValue(subject, OID.keyUsage, parseKeyUsage);
    if (subject.authority !== undefined && usages?.includes('keyCertSign') !== true)
      return 'a CA needs the key usage keyCertSign';
    if (usages === undefined) return undefined;
    const signs = (usage: KeyUsage): boolean => usage === 'keyCertSign' || usage === 'cRLSign';
    if (subject.authority === undefined && usages.some(signs))
      return 'an end entity must sign neither certificates nor CRLs';
    const ofKey = usages.filter((usage) => !signs(usage));
    const wrong = ofKey.find((usage) => !usagesOfKey(subject.publicKey).includes(usage));
    if (wrong !== undefined) return `a ${subject.publicKey.keyType} key cannot have the key usage ${wrong}`;
    const only = usages.find((usage) => usage === 'encipherOnly' || usage === 'decipherOnly');
    return only !== undefined && !usages.includes('keyAgreement') ? `${only} needs keyAgreement` : undefined;
  }),
  ofCa('ext-key-usage', 'RFC 5280 §4.2.1.12', (subject) => {
    const purposes = extensionValue(subject, OID.extKeyUsage, parseExtKeyUsage);
    if (purposes === undefined) return undefined;
    if (new Set(purposes).size !== purposes.length) return 'an extended key usage must not occur twice';
    const { extKeyUsage: allowed } = subject.issuer;
    if (allowed === undefined || allowed.includes(OID.anyExtendedKeyUsage)) return undefined;
    const beyond = purposes.find((purpose) => !allowed.includes(purpose));
    return beyond && `the CA certificate does not allow ${oidName(beyond)}`;
  }),
  ofCa('subject-key-identifier', 'RFC 5280 §4.2.1.2', (subject) => {
    const identifier = extensionValue(subject, OID.subjectKeyIdentifier, parseSubjectKeyIdentifier);
    if (identifier === undefined) return 'subjectKeyIdentifier must be present';
    return identifier.equals(subjectKeyIdentifier(subject.tbs.spki))
      ? undefined
      : 'subjectKeyIdentifier must be the SHA-1 of the public key';
  }),
  ofCa('authority-key-identifier', 'RFC 5280 §4.2.1.1', (subject) => {
    const { issuer } = subject;
    const identifier = extensionValue(subject, OID.authorityKeyIdentifier, parseAuthorityKeyIdentifier);
    if (identifier === undefined) return 'authorityKeyIdentifier must be present, with a key identifier';
    return identifier.equals(issuer.subjectKeyIdentifier ?? subjectKeyIdentifier(issuer.spki))
      ? undefined
      : "authorityKeyIdentifier must be the CA certificate's subjectKeyIdentifier";
  }),
  ofRequest('name-constraints', 'RFC 5280 §4.2.1.10', (subject) => {
    const extension = findExtension(subject.issuer.extensions, OID.nameConstraints);
    if (extension === undefined) return undefined;
    const names = extensionValue(subject, OID.subjectAltName, parseGeneralNames) ?? [];
    const all = [...names, ...altNamesInSubject(subject.tbs.subject)];
    return nameConstraintProblem(parseNameConstraints(extension.value), subject.tbs.subject, all, true);
  }),
  ofCa('locations', 'RFC 5280 §4.2.1.13, §4.2.2.1', (subject) => {
    const points = extensionValue(subject, OID.cRLDistributionPoints, parseCrlDistributionPoints);
    if (points?.length === 0) return 'cRLDistributionPoints must name a location';
    const access = extensionValue(subject, OID.authorityInfoAccess, parseAuthorityInfoAccess);
    const urls = [...(points ?? []), ...(access?.ocsp ?? []), ...(access?.caIssuers ?? [])];
    if (access !== undefined && access.ocsp.length + access.caIssuers.length === 0)
      return 'authorityInfoAccess must name a location';
    const wrong = urls.find((value) => generalNameProblem({ kind: 'uri', value }) ?? !/^(http|ldap)s?:/i.test(value));
    return wrong === undefined ? undefined : `${JSON.stringify(wrong)} is not a URL to fetch from`;
  }),
];

export interface LintFinding {
  /** The rule's name, or `der` if the bytes are not a TBSCertificate. */
  readonly rule: string;
  readonly blames: LintRule['blames'];
  readonly message: string;
}

interface Linted {
  /** Empty if it may be signed. */
  readonly findings: readonly LintFinding[];
  /** Absent if the bytes are not a TBSCertificate. */
  readonly tbs?: TbsFields;
}

export interface LintContext extends Omit<LintSubject, 'tbs' | 'publicKey'> {
  /** The parsed key to certify; used only if its bytes are identical. */
  readonly publicKey?: PublicKeyInfo;
}

/** Runs every rule. @param der TBSCertificate to be signed */
export function lint(der: Buffer, context: LintContext): Linted {
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
