/** What RFC 5280 appendix A (and X.520, PKCS #9) allow as the value of a known attribute type. */
import { Tag } from '../der/der.ts';
import { attributeName, type AttributeTypeAndValue } from './name.ts';
import { OID } from '../der/oids.ts';
import { UPPER_BOUNDS } from './upper-bounds.ts';

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

/**
 * What is wrong with an attribute of a name that is to be certified, or undefined. The reason continues
 * "the subject …". Values of types we do not know have to be free of control characters only.
 */
export function attributeProblem({ type, tag, text }: AttributeTypeAndValue): string | undefined {
  const label = attributeName(type);
  const known = label !== type;
  if (known && !(STRING_TYPES.get(type) ?? DIRECTORY_STRING).includes(tag))
    return `has a ${label} of another string type than RFC 5280 allows`;
  if (text === '') return `has an empty ${label}`;
  if (CONTROL.test(text)) return `has a control character in ${label}`;
  if (!text.isWellFormed()) return `has text that is not Unicode in ${label}`;
  const bound = UPPER_BOUNDS.get(type);
  if (bound !== undefined && text.length > bound && Array.from(text).length > bound)
    return `has a ${label} of more than ${bound} characters`;
  if (type === OID.countryName && !/^[A-Za-z]{2}$/.test(text)) return 'has a C that is not a two-letter country code';
  return undefined;
}
