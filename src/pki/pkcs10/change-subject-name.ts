/** The ChangeSubjectName attribute (RFC 6402 §2.8): the names that a certificate shall get instead of those of its request. */
import { children, contextConstructed, DerError, parseDer, sequence, Tag, type DerElement } from '../der/der.ts';
import { parseGeneralNames, type GeneralName } from '../x509/general-name.ts';
import { parseName, type Name } from '../x509/name.ts';

export interface SubjectChange {
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
