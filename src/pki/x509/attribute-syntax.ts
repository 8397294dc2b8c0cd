/** Whether a name can be certified as a subject. */
import { firstRepeated, OID } from '../der/oids.ts';
import { attributeName, knownAttributeType } from './attribute-types.ts';
import { characterOutside, Tag } from '../der/der.ts';
import { type AttributeTypeAndValue, isCharacterString, type Name } from './name.ts';

/** C0, DEL and C1: names do not need them, and they can mislead readers of logs. */
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;
/** Characters that change the text direction, have no width, or break the line. */
const INVISIBLE = /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Either of them. */
export const UNSAFE = new RegExp(`${CONTROL.source}|${INVISIBLE.source}`, 'u');

const STRING_NAMES = { [Tag.PRINTABLE_STRING]: 'a PrintableString', [Tag.IA5_STRING]: 'an IA5String' } as const;

/** Bounds the cost of a name in logs and comparisons. */
const MAX_ATTRIBUTES = 64;
const MAX_OCTETS = 4096;

/** Why a name cannot be certified as a subject; undefined if it can. Continues "the subject …". */
export function subjectProblem(subject: Name): string | undefined {
  if (subject.der.length > MAX_OCTETS) return 'is longer than 4 KiB';
  const attributes = subject.rdns.flat();
  if (attributes.length > MAX_ATTRIBUTES) return `has more than ${MAX_ATTRIBUTES} attributes`;
  for (const rdn of subject.rdns) {
    const twice = firstRepeated(rdn.map(({ type }) => type));
    // X.501 §9.3: the attributes of an RDN have distinct types.
    if (twice !== undefined) return `has ${attributeName(twice)} more than once in one RDN`;
  }
  return attributes.map(attributeProblem).find(Boolean);
}

/** Types of values, other than text, in names that OpenSSL and GnuTLS can read. */
const READABLE: ReadonlySet<number> = new Set([Tag.BIT_STRING, Tag.SEQUENCE]);

/** Checks one attribute. Values of unknown types must only be free of invisible characters. */
function attributeProblem({ type, tag, text }: AttributeTypeAndValue): string | undefined {
  const known = knownAttributeType(type);
  const label = known?.name ?? type;
  if (text === '') return `has an empty ${label}`;
  if (!isCharacterString(tag))
    return known === undefined && READABLE.has(tag) ? undefined : `has a ${label} whose value is not readable text`;
  if (CONTROL.test(text)) return `has a control character in ${label}`;
  if (INVISIBLE.test(text)) return `has a bidirectional, zero-width or line separating character in ${label}`;
  if (!text.isWellFormed()) return `has text that is not Unicode in ${label}`;
  if (known !== undefined && text.length > known.bound && Array.from(text).length > known.bound)
    return `has a ${label} of more than ${known.bound} characters`;
  const { string } = known ?? {};
  const outside = string === undefined ? undefined : characterOutside(string, text);
  if (string !== undefined && outside !== undefined)
    return `has a ${label} with ${outside}, which ${STRING_NAMES[string]} cannot hold`;
  if (type === OID.countryName && !/^[A-Za-z]{2}$/.test(text)) return 'has a C that is not a two-letter country code';
  return undefined;
}
