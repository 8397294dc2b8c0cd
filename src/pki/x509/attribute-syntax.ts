/** Permitted values of known attribute types (RFC 5280 appendix A, X.520, PKCS #9). */
import { Tag } from '../der/der.ts';
import { firstRepeated, OID } from '../der/oids.ts';
import { attributeName } from './attribute-types.ts';
import { type AttributeTypeAndValue, isDerOrdered, type Name } from './name.ts';

/**
 * Maximum characters by attribute type (dotted OID): RFC 5280 appendix A.1 ("Upper Bounds"; surname, givenName,
 * initials and generationQualifier are X520name), X.520, PKCS #9, and RFC 1274 §9.3.1 for userId.
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

/** String types of attributes other than DirectoryString. */
const STRING_TYPES: ReadonlyMap<string, readonly number[]> = new Map<string, readonly number[]>([
  [OID.countryName, [Tag.PRINTABLE_STRING]],
  [OID.serialNumber, [Tag.PRINTABLE_STRING]],
  [OID.dnQualifier, [Tag.PRINTABLE_STRING]],
  [OID.domainComponent, [Tag.IA5_STRING]],
  [OID.emailAddress, [Tag.IA5_STRING]],
  [OID.unstructuredName, [Tag.IA5_STRING, ...DIRECTORY_STRING]],
]);

/** C0, DEL and C1: names do not need them, and they can mislead readers of logs. */
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;
/** Characters that change the text direction, have no width, or break the line. */
const INVISIBLE = /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Bounds the cost of a name in logs and comparisons. */
const MAX_ATTRIBUTES = 64;
const MAX_OCTETS = 4096;

/** Why a name cannot be certified as a subject; undefined if it can. Continues "the subject …". */
export function subjectProblem(subject: Name): string | undefined {
  if (subject.der.length > MAX_OCTETS) return 'is longer than 4 KiB';
  const attributes = subject.rdns.flat();
  if (attributes.length > MAX_ATTRIBUTES) return `has more than ${MAX_ATTRIBUTES} attributes`;
  if (!isDerOrdered(subject)) return 'has a multi-valued RDN that is not in DER order';
  for (const rdn of subject.rdns) {
    const twice = firstRepeated(rdn.map(({ type }) => type));
    // X.501 §9.3: the attributes of an RDN have distinct types.
    if (twice !== undefined) return `has ${attributeName(twice)} more than once in one RDN`;
  }
  return attributes.map(attributeProblem).find(Boolean);
}

/** Checks one attribute. Values of unknown types must only be free of invisible characters. */
function attributeProblem({ type, tag, text }: AttributeTypeAndValue): string | undefined {
  const label = attributeName(type);
  const known = label !== type;
  if (known && !(STRING_TYPES.get(type) ?? DIRECTORY_STRING).includes(tag))
    return `has a ${label} of a string type that RFC 5280 does not allow`;
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
