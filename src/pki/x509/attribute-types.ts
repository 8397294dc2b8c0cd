/** The names of attribute types in the text form of distinguished names. */
import { OID } from '../der/oids.ts';

/** Names of RFC 4514 §3 first; the others are registered LDAP descriptors (RFC 4519) or PKCS #9's own. */
const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  [OID.commonName, 'CN'],
  [OID.localityName, 'L'],
  [OID.stateOrProvinceName, 'ST'],
  [OID.organizationName, 'O'],
  [OID.organizationalUnitName, 'OU'],
  [OID.countryName, 'C'],
  [OID.streetAddress, 'STREET'],
  [OID.domainComponent, 'DC'],
  [OID.userId, 'UID'],
  [OID.surname, 'SN'],
  [OID.serialNumber, 'serialNumber'],
  [OID.title, 'title'],
  [OID.description, 'description'],
  [OID.businessCategory, 'businessCategory'],
  [OID.postalCode, 'postalCode'],
  [OID.name, 'name'],
  [OID.givenName, 'givenName'],
  [OID.initials, 'initials'],
  [OID.generationQualifier, 'generationQualifier'],
  [OID.dnQualifier, 'dnQualifier'],
  [OID.pseudonym, 'pseudonym'],
  [OID.organizationIdentifier, 'organizationIdentifier'],
  [OID.emailAddress, 'emailAddress'],
  [OID.unstructuredName, 'unstructuredName'],
  [OID.unstructuredAddress, 'unstructuredAddress'],
]);

const TYPES_BY_NAME: ReadonlyMap<string, string> = new Map([
  ...[...SHORT_NAMES].map(([type, name]) => [name.toLowerCase(), type] as const),
  ['commonname', OID.commonName],
  ['localityname', OID.localityName],
  ['stateorprovincename', OID.stateOrProvinceName],
  ['organizationname', OID.organizationName],
  ['organizationalunitname', OID.organizationalUnitName],
  ['countryname', OID.countryName],
  ['streetaddress', OID.streetAddress],
  ['domaincomponent', OID.domainComponent],
  ['userid', OID.userId],
  ['surname', OID.surname],
  ['gn', OID.givenName],
  ['email', OID.emailAddress],
  ['e', OID.emailAddress],
]);

/** The attribute type's short name in the text form; undefined: it has none. */
export const shortName = (type: string): string | undefined => SHORT_NAMES.get(type);

/** The same, or else its dotted OID. */
export function attributeName(type: string): string {
  return shortName(type) ?? type;
}

/** The dotted OID of an attribute's short or long name (case ignored) or dotted form; undefined if unknown. */
export function attributeType(name: string): string | undefined {
  return /^[0-2](\.(0|[1-9]\d*))+$/.test(name) ? name : TYPES_BY_NAME.get(name.toLowerCase());
}
