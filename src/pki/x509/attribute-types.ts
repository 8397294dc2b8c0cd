/** Attribute types of distinguished names: their names in text form, and the values that they permit. */
import { Tag } from '../der/der.ts';
import { OID } from '../der/oids.ts';

interface AttributeType {
  /** In text form: RFC 4514 §3 names first, then registered LDAP descriptors (RFC 4519) and PKCS #9 names. */
  readonly name: string;
  /**
   * Maximum characters: RFC 5280 appendix A.1 ("Upper Bounds"; surname, givenName, initials and generationQualifier are
   * X520name), X.520, PKCS #9, and RFC 1274 §9.3.1 for userId.
   */
  readonly bound: number;
  /** The only permitted string type (tag); undefined: a DirectoryString (RFC 5280 appendix A, X.520). */
  readonly string: StringType | undefined;
}

type StringType = typeof Tag.PRINTABLE_STRING | typeof Tag.IA5_STRING;

const row = (long: keyof typeof OID, name: string, bound: number, string?: StringType) =>
  [long, { name, bound, string }] as const;

/** By their names in {@link OID}. */
const ROWS: readonly (readonly [keyof typeof OID, AttributeType])[] = [
  row('commonName', 'CN', 64),
  row('localityName', 'L', 128),
  row('stateOrProvinceName', 'ST', 128),
  row('organizationName', 'O', 64),
  row('organizationalUnitName', 'OU', 64),
  row('countryName', 'C', 2, Tag.PRINTABLE_STRING),
  row('streetAddress', 'STREET', 128),
  row('domainComponent', 'DC', Infinity, Tag.IA5_STRING),
  row('userId', 'UID', 256),
  row('surname', 'SN', 32_768),
  row('serialNumber', 'serialNumber', 64, Tag.PRINTABLE_STRING),
  row('title', 'title', 64),
  row('description', 'description', 1024),
  row('businessCategory', 'businessCategory', 128),
  row('postalCode', 'postalCode', 40),
  row('name', 'name', 32_768),
  row('givenName', 'givenName', 32_768),
  row('initials', 'initials', 32_768),
  row('generationQualifier', 'generationQualifier', 32_768),
  row('dnQualifier', 'dnQualifier', Infinity, Tag.PRINTABLE_STRING),
  row('pseudonym', 'pseudonym', 128),
  row('organizationIdentifier', 'organizationIdentifier', 256),
  row('emailAddress', 'emailAddress', 255, Tag.IA5_STRING),
  row('unstructuredName', 'unstructuredName', 255),
  row('unstructuredAddress', 'unstructuredAddress', 255),
];

const TYPES: ReadonlyMap<string, AttributeType> = new Map(ROWS.map(([long, type]) => [OID[long], type]));

const TYPES_BY_NAME: ReadonlyMap<string, string> = new Map([
  ...ROWS.flatMap(([long, { name }]) => [long, name].map((text) => [text.toLowerCase(), OID[long]] as const)),
  ['gn', OID.givenName],
  ['email', OID.emailAddress],
  ['e', OID.emailAddress],
]);

/** undefined for an unknown type (dotted OID). */
export const knownAttributeType = (type: string): AttributeType | undefined => TYPES.get(type);

/** The short name, or the dotted OID. */
export function attributeName(type: string): string {
  return TYPES.get(type)?.name ?? type;
}

/** Dotted OID from a short or long name (ignoring case) or the dotted form; undefined if unknown. */
export function attributeType(name: string): string | undefined {
  return /^[0-2](\.(0|[1-9]\d*))+$/.test(name) ? name : TYPES_BY_NAME.get(name.toLowerCase());
}
