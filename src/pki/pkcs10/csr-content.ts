/** The content of a certification request, in any format (PKCS #10, CRMF), and checks on it. */
import { badRequest } from '../../errors.ts';
import type { Attribute } from '../cms/cms.ts';
import {
  children,
  contextConstructed,
  type DerElement,
  DerError,
  parseDer,
  readString,
  sequence,
  Tag,
  unlessMalformed,
} from '../der/der.ts';
import { firstRepeated, OID, oidName } from '../der/oids.ts';
import { subjectProblem } from '../x509/attribute-syntax.ts';
import { duplicateExtension, type Extension, findExtension } from '../x509/extensions.ts';
import { formatGeneralName, type GeneralName, generalNameProblem, parseGeneralNames } from '../x509/general-name.ts';
import { emptyAttribute, type Name, parseName, withoutEmpty } from '../x509/name.ts';
import { type PublicKeyInfo, publicKeyProblem } from '../x509/public-key.ts';

/** Attributes whose extensions are joined. */
export const EXTENSION_REQUESTS: readonly string[] = [OID.extensionRequest, OID.microsoftExtensionRequest];

/** The content of a request, without its proof of possession. */
export interface CsrContent {
  readonly der: Buffer;
  /** DER CertificationRequestInfo, which the signature covers. */
  readonly info: Buffer;
  /** May have empty values, which {@link checkNoEmptyValue} rejects where the request renews no certificate. */
  readonly subject: Name;
  readonly publicKey: PublicKeyInfo;
  readonly attributes: readonly Attribute[];
  /** Requested extensions, from extensionRequest or Microsoft's variant. */
  readonly extensions: readonly Extension[];
  readonly subjectAltNames: readonly GeneralName[];
  /** Empty if its value cannot be read. */
  readonly challengePassword: string | undefined;
  /** The channel binding in its dedicated attribute (RFC 7894 §3.3). */
  readonly identityLinking: string | undefined;
  /** A one-time password from a client that cannot use HTTP Basic (RFC 7894 §3.1). */
  readonly otpChallenge: string | undefined;
  /** Secret that later authorizes revocation (RFC 7894 §3.2); its hash in a stored request (challenges.ts). */
  readonly revocationChallenge: string | undefined;
  /** Names from a ChangeSubjectName attribute; they take effect only with {@link changeSubject}. */
  readonly subjectChange: SubjectChange | undefined;
  /** {@link changeSubject} was applied: subject, names and extensions differ from the DER. */
  readonly renamed?: true;
}

/**
 * Checks the content of a request in any format.
 * @throws EstuaryError 400 CSR_SUBJECT_INVALID, CSR_DUPLICATE_ATTRIBUTE, CSR_DUPLICATE_EXTENSION, CSR_SAN_INVALID;
 * DerError
 */
export function checkedContent(
  content: Pick<CsrContent, 'der' | 'info' | 'subject' | 'publicKey'>,
  attributes: readonly Attribute[],
  extensions: readonly Extension[],
): CsrContent {
  checkSubject(withoutEmpty(content.subject), 'subject');
  checkDuplicates(attributes, extensions);
  return {
    ...content,
    attributes,
    extensions,
    subjectAltNames: requestedAltNames(extensions),
    // With `est.challenge_password = "ignore"`, it may be anything.
    challengePassword: unlessMalformed(() => textOf(attributes, 'challengePassword'), ''),
    identityLinking: boundedTextOf(attributes, 'estIdentityLinking'),
    otpChallenge: boundedTextOf(attributes, 'otpChallenge'),
    revocationChallenge: boundedTextOf(attributes, 'revocationChallenge'),
    subjectChange: subjectChange(attributes),
  };
}

/**
 * Applies the names of the ChangeSubjectName attribute (RFC 6402 §2.8). The caller has checked that the requester may
 * change them.
 */
export function changeSubject<T extends CsrContent>(csr: T): T {
  if (csr.subjectChange === undefined) return csr;
  const { subject, subjectAltNames, subjectAltNamesDer: value } = csr.subjectChange;
  const others = csr.extensions.filter(({ oid }) => oid !== OID.subjectAltName);
  const extensions = value === undefined ? others : [...others, { oid: OID.subjectAltName, critical: false, value }];
  return { ...csr, subject, subjectAltNames, extensions, subjectChange: undefined, renamed: true };
}

/** @throws EstuaryError 400 CSR_KEY_WEAK, CSR_KEY_UNSUPPORTED */
export function checkKey(publicKey: PublicKeyInfo): void {
  const problem = publicKeyProblem(publicKey);
  if (problem === undefined) return;
  const code = problem.kind === 'weak' ? 'CSR_KEY_WEAK' : 'CSR_KEY_UNSUPPORTED';
  throw badRequest(code, `The CSR's public key ${problem.reason}.`);
}

function checkSubject(subject: Name, what: string): void {
  const problem = subjectProblem(subject);
  if (problem !== undefined) throw badRequest('CSR_SUBJECT_INVALID', `The CSR's ${what} ${problem}.`);
}

/** @throws EstuaryError 400 `CSR_SUBJECT_INVALID` */
export function checkNoEmptyValue({ subject }: Pick<CsrContent, 'subject'>): void {
  if (emptyAttribute(subject) !== undefined) checkSubject(subject, 'subject');
}

function checkDuplicates(attributes: readonly Attribute[], extensions: readonly Extension[]): void {
  const single = attributes.map(({ oid }) => oid).filter((oid) => !EXTENSION_REQUESTS.includes(oid));
  const attribute = firstRepeated(single);
  if (attribute !== undefined)
    throw badRequest('CSR_DUPLICATE_ATTRIBUTE', `The CSR has the attribute ${oidName(attribute)} more than once.`);
  const extension = duplicateExtension(extensions);
  if (extension !== undefined)
    throw badRequest('CSR_DUPLICATE_EXTENSION', `The CSR asks for the extension ${oidName(extension)} more than once.`);
}

/** The value of a single-valued attribute; undefined if the attribute is absent. @throws DerError */
export function singleValue(attributes: readonly Attribute[], type: string): Buffer | undefined {
  const attribute = attributes.find(({ oid }) => oid === type);
  if (attribute === undefined) return undefined;
  const [value, ...more] = attribute.values;
  if (value === undefined || more.length > 0) throw new DerError(`${oidName(type)}: not exactly one value`);
  return value;
}

function requestedAltNames(extensions: readonly Extension[]): GeneralName[] {
  const extension = findExtension(extensions, OID.subjectAltName);
  if (extension === undefined) return [];
  const names = parseGeneralNames(extension.value);
  checkAltNames(names, 'subjectAltName');
  return names;
}

function checkAltNames(names: readonly GeneralName[], what: string): void {
  for (const name of names) {
    const problem = generalNameProblem(name);
    if (problem !== undefined)
      throw badRequest('CSR_SAN_INVALID', `The CSR's ${what} ${printable(formatGeneralName(name))} ${problem}.`);
  }
}

function subjectChange(attributes: readonly Attribute[]): SubjectChange | undefined {
  const value = singleValue(attributes, OID.changeSubjectName);
  if (value === undefined) return undefined;
  const change = parseChangeSubjectName(value);
  checkSubject(change.subject, 'new subject');
  checkAltNames(change.subjectAltNames, 'new subjectAltName');
  return change;
}

/** Client text for an error message: one short line of ASCII. */
const printable = (text: string): string => {
  const clean = text.replace(/[^\x20-\x7e]/g, '?');
  return clean.length > 80 ? `${clean.slice(0, 80)}…` : clean;
};

function textOf(attributes: readonly Attribute[], name: 'challengePassword' | ChallengeName): string | undefined {
  const value = singleValue(attributes, OID[name]);
  return value && readString(parseDer(value, undefined, name), name);
}

/** Attributes of RFC 7894. */
type ChallengeName = 'estIdentityLinking' | 'otpChallenge' | 'revocationChallenge';

/** RFC 7894 §3: ub-aa-est-identity-linking and the other bounds. */
const MAX_CHALLENGE = 255;

function boundedTextOf(attributes: readonly Attribute[], name: ChallengeName): string | undefined {
  const text = textOf(attributes, name);
  if (text !== undefined && Array.from(text).length > MAX_CHALLENGE)
    throw new DerError(`${name}: more than ${MAX_CHALLENGE} characters`);
  // A stored request has an empty value in place of a secret.
  return text === '' ? undefined : text;
}

/** ChangeSubjectName (RFC 6402 §2.8): the names that replace those of the request. */
interface SubjectChange {
  /** Empty if absent: the certificate then has no subject, as the RFC requires. */
  readonly subject: Name;
  /** Empty if absent: the certificate then has no subjectAltName. */
  readonly subjectAltNames: readonly GeneralName[];
  /** DER GeneralNames, the extension's content; undefined if absent. */
  readonly subjectAltNamesDer: Buffer | undefined;
}

/**
 * Reads both forms of subjectAlt: untagged as in the RFC, which clients send, and `[1] IMPLICIT` as in erratum 3943. In
 * the untagged form both fields are SEQUENCEs; a Name is empty or contains SETs.
 * @param der the attribute's single value
 * @throws DerError, also if both fields are absent, which RFC 6402 forbids
 */
export function parseChangeSubjectName(der: Buffer): SubjectChange {
  const fields = children(parseDer(der, Tag.SEQUENCE, 'ChangeSubjectName').value, 'ChangeSubjectName');
  const subject = fields[0] !== undefined && isName(fields[0]) ? fields.shift() : undefined;
  const subjectAlt = fields.shift();
  if (fields.length > 0) throw new DerError('ChangeSubjectName: trailing fields');
  if (subject === undefined && subjectAlt === undefined)
    throw new DerError('ChangeSubjectName: neither subject nor subjectAlt');
  const subjectAltNamesDer = subjectAlt && generalNames(subjectAlt);
  return {
    subject: parseName(subject?.raw ?? sequence()),
    subjectAltNames: subjectAltNamesDer === undefined ? [] : parseGeneralNames(subjectAltNamesDer),
    subjectAltNamesDer,
  };
}

const isName = ({ tag, value }: DerElement): boolean =>
  tag === Tag.SEQUENCE && (value.length === 0 || value[0] === Tag.SET);

function generalNames({ tag, raw, value }: DerElement): Buffer {
  if (tag === Tag.SEQUENCE) return raw;
  if (tag === contextConstructed(1)) return sequence(value);
  throw new DerError('ChangeSubjectName.subjectAlt: unexpected tag');
}
