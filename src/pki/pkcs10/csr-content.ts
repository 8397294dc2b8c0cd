/** What a certification request asks for, whatever format it came in (PKCS #10, CRMF), and the checks on it. */
import { badRequest } from '../../errors.ts';
import {
  children,
  contextConstructed,
  type DerElement,
  DerError,
  parseDer,
  readString,
  sequence,
  Tag,
} from '../der/der.ts';
import { firstRepeated, OID, oidName } from '../der/oids.ts';
import { subjectProblem } from '../x509/attribute-syntax.ts';
import { duplicateExtension, type Extension, findExtension } from '../x509/extensions.ts';
import { formatGeneralName, type GeneralName, generalNameProblem, parseGeneralNames } from '../x509/general-name.ts';
import { type Name, parseName } from '../x509/name.ts';
import { type PublicKeyInfo, publicKeyProblem } from '../x509/public-key.ts';

export interface CsrAttribute {
  /** Dotted OID. */
  readonly oid: string;
  /** DER of each value. */
  readonly values: readonly Buffer[];
}

/** What a request asks for, apart from its proof of possession. */
export interface CsrContent {
  readonly der: Buffer;
  /** DER CertificationRequestInfo: what the signature covers. */
  readonly info: Buffer;
  readonly subject: Name;
  readonly publicKey: PublicKeyInfo;
  readonly attributes: readonly CsrAttribute[];
  /** Requested extensions, from extensionRequest or Microsoft's form of it. */
  readonly extensions: readonly Extension[];
  readonly subjectAltNames: readonly GeneralName[];
  readonly challengePassword: string | undefined;
  /** The channel binding in an attribute that has no other meaning (RFC 7894 §3.3). */
  readonly identityLinking: string | undefined;
  /** A one-time password, for a client that cannot send it by HTTP Basic (RFC 7894 §3.1). */
  readonly otpChallenge: string | undefined;
  /** What its holder may have the certificate revoked with (RFC 7894 §3.2); of a request that was stored, its hash (challenges.ts). */
  readonly revocationChallenge: string | undefined;
  /** Asked for with a ChangeSubjectName attribute, and without effect until {@link changeSubject}. */
  readonly subjectChange: SubjectChange | undefined;
  /** The change was made: subject, names and extensions are not those of the DER. */
  readonly renamed?: true;
}

/**
 * The checks on what a request asks for, whatever format it came in.
 * @throws EstuaryError 400 CSR_SUBJECT_INVALID, CSR_DUPLICATE_ATTRIBUTE, CSR_DUPLICATE_EXTENSION, CSR_SAN_INVALID;
 *   DerError
 */
export function checkedContent(
  content: Pick<CsrContent, 'der' | 'info' | 'subject' | 'publicKey'>,
  attributes: readonly CsrAttribute[],
  extensions: readonly Extension[],
): CsrContent {
  checkSubject(content.subject, 'subject');
  checkDuplicates(attributes, extensions);
  return {
    ...content,
    attributes,
    extensions,
    subjectAltNames: requestedAltNames(extensions),
    challengePassword: textOf(attributes, 'challengePassword'),
    identityLinking: boundedTextOf(attributes, 'estIdentityLinking'),
    otpChallenge: boundedTextOf(attributes, 'otpChallenge'),
    revocationChallenge: boundedTextOf(attributes, 'revocationChallenge'),
    subjectChange: subjectChange(attributes),
  };
}

/**
 * The request with the names of its ChangeSubjectName in place of its own, which RFC 6402 §2.8 has the CA do. For whoever
 * has found that the requester may change them.
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

function checkDuplicates(attributes: readonly CsrAttribute[], extensions: readonly Extension[]): void {
  const attribute = firstRepeated(attributes.map(({ oid }) => oid));
  if (attribute !== undefined)
    throw badRequest('CSR_DUPLICATE_ATTRIBUTE', `The CSR has the attribute ${oidName(attribute)} more than once.`);
  const extension = duplicateExtension(extensions);
  if (extension !== undefined)
    throw badRequest('CSR_DUPLICATE_EXTENSION', `The CSR asks for the extension ${oidName(extension)} more than once.`);
}

/** The one value of a single-valued attribute, or undefined when the attribute is absent. @throws DerError */
export function singleValue(attributes: readonly CsrAttribute[], type: string): Buffer | undefined {
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

function subjectChange(attributes: readonly CsrAttribute[]): SubjectChange | undefined {
  const value = singleValue(attributes, OID.changeSubjectName);
  if (value === undefined) return undefined;
  const change = parseChangeSubjectName(value);
  checkSubject(change.subject, 'new subject');
  checkAltNames(change.subjectAltNames, 'new subjectAltName');
  return change;
}

/** The client's text in an error message: one short line of ASCII. */
const printable = (text: string): string => {
  const clean = text.replace(/[^\x20-\x7e]/g, '?');
  return clean.length > 80 ? `${clean.slice(0, 80)}…` : clean;
};

function textOf(attributes: readonly CsrAttribute[], name: 'challengePassword' | ChallengeName): string | undefined {
  const value = singleValue(attributes, OID[name]);
  return value && readString(parseDer(value, undefined, name), name);
}

/** The attributes of RFC 7894. */
type ChallengeName = 'estIdentityLinking' | 'otpChallenge' | 'revocationChallenge';

/** RFC 7894 §3: ub-aa-est-identity-linking and its siblings. */
const MAX_CHALLENGE = 255;

function boundedTextOf(attributes: readonly CsrAttribute[], name: ChallengeName): string | undefined {
  const text = textOf(attributes, name);
  if (text !== undefined && Array.from(text).length > MAX_CHALLENGE)
    throw new DerError(`${name}: more than ${MAX_CHALLENGE} characters`);
  // An empty one is what a stored request has in the place of a secret.
  return text === '' ? undefined : text;
}

/** The ChangeSubjectName attribute (RFC 6402 §2.8): the names that a certificate shall get instead of those of its request. */
interface SubjectChange {
  /** Empty where the attribute has none: the RFC then leaves the certificate without a subject. */
  readonly subject: Name;
  /** Empty where the attribute has none: the certificate then gets no subjectAltName. */
  readonly subjectAltNames: readonly GeneralName[];
  /** DER GeneralNames, the content of the extension; undefined where there is none. */
  readonly subjectAltNamesDer: Buffer | undefined;
}

/**
 * Reads both forms of subjectAlt: the untagged one of the RFC, which clients send, and `[1] IMPLICIT` of its erratum 3943.
 * Untagged, both fields are SEQUENCEs; a Name is the one that is empty or holds SETs.
 *
 * @param der the one value of the attribute
 * @throws DerError; also on one with neither field, which RFC 6402 forbids
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
