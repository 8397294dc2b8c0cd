/** What RFC 5280 appendix A (and X.520, PKCS #9) allow as the value of a known attribute type. */
import { Tag } from '../der/der.ts';
import { firstRepeated, OID } from '../der/oids.ts';
import { attributeName } from './attribute-types.ts';
import { type AttributeTypeAndValue, isDerOrdered, type Name } from './name.ts';

/**
 * The most characters a value of these attribute types may have, by dotted OID: RFC 5280 appendix A.1 ("Upper
 * Bounds"), where surname, givenName, initials and generationQualifier are X520name; X.520 for what it does not list;
 * PKCS #9 for its own; RFC 1274 §9.3.1 for userId.
 */
const UPPER_BOUNDS: ReadonlyMap<string, number> = new Map([
  [OID.commonName, 64],
  [OID.surname, 32_768],
  [OID.serialNumber, 64],
  [OID.countryName, 2],
  [OID.localityName, 128],
  [OID.stateOrProvinceName, 128],
  [OID.streetAddress, 128],
  [OID.organizationName, 64],
  [OID.organizationalUnitName, 64],
  [OID.title, 64],
  [OID.description, 1024],
  [OID.businessCategory, 128],
  [OID.postalCode, 40],
  [OID.name, 32_768],
  [OID.givenName, 32_768],
  [OID.initials, 32_768],
  [OID.generationQualifier, 32_768],
  [OID.pseudonym, 128],
  [OID.organizationIdentifier, 256],
  [OID.userId, 256],
  [OID.emailAddress, 255],
  [OID.unstructuredName, 255],
  [OID.unstructuredAddress, 255],
]);

const DIRECTORY_STRING: readonly number[] = [
  Tag.UTF8_STRING,
  Tag.PRINTABLE_STRING,
  Tag.TELETEX_STRING,
  Tag.UNIVERSAL_STRING,
  Tag.BMP_STRING,
];

/** The string types of attributes that are no DirectoryString. */
const STRING_TYPES: ReadonlyMap<string, readonly number[]> = new Map<string, readonly number[]>([
  [OID.countryName, [Tag.PRINTABLE_STRING]],
  [OID.serialNumber, [Tag.PRINTABLE_STRING]],
  [OID.dnQualifier, [Tag.PRINTABLE_STRING]],
  [OID.domainComponent, [Tag.IA5_STRING]],
  [OID.emailAddress, [Tag.IA5_STRING]],
  [OID.unstructuredName, [Tag.IA5_STRING, ...DIRECTORY_STRING]],
]);

/** C0, DEL and C1: nothing that a name needs, and much that fools whoever reads it. */
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;
/** Nor does it need what turns the direction of the text, has no width, or breaks the line. */
const INVISIBLE = /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/u;

/** No device has more; what is done with a name costs its size, in every log line and every comparison. */
const MAX_ATTRIBUTES = 64;
const MAX_OCTETS = 4096;

/**
 * What is wrong with a name that is to be certified as a subject, or undefined. The reason continues "the subject …".
 */
export function subjectProblem(subject: Name): string | undefined {
  if (subject.der.length > MAX_OCTETS) return 'is longer than 4 KiB';
  const attributes = subject.rdns.flat();
  if (attributes.length > MAX_ATTRIBUTES) return `has more than ${MAX_ATTRIBUTES} attributes`;
  if (!isDerOrdered(subject)) return 'has a multi-valued RDN that is not in DER order';
  for (const rdn of subject.rdns) {
    const twice = firstRepeated(rdn.map(({ type }) => type));
    // X.501 §9.3: each attribute of an RDN is of another type
    if (twice !== undefined) return `has ${attributeName(twice)} more than once in one RDN`;
  }
  return attributes.map(attributeProblem).find(Boolean);
}

/** The same for one attribute. Values of types we do not know have to be free of what cannot be seen only. */
function attributeProblem({ type, tag, text }: AttributeTypeAndValue): string | undefined {
  const label = attributeName(type);
  const known = label !== type;
  if (known && !(STRING_TYPES.get(type) ?? DIRECTORY_STRING).includes(tag))
    return `has a ${label} of another string type than RFC 5280 allows`;
  if (text === '') return `has an empty ${label}`;
  if (CONTROL.test(text)) return `has a control character in ${label}`;
  if (INVISIBLE.test(text)) return `has a bidirectional, zero-width or line separating character in ${label}`;
  if (!text.isWellFormed()) return `has text that is not Unicode in ${label}`;
  const bound = UPPER_BOUNDS.get(type);
  if (bound !== undefined && text.length > bound && Array.from(text).length > bound)
    return `has a ${label} of more than ${bound} characters`;
  if (type === OID.countryName && !/^[A-Za-z]{2}$/.test(text)) return 'has a C that is not a two-letter country code';
  return undefined;
}
