/** Names of attribute types in the text form of distinguished names. */
import { OID } from '../der/oids.ts';

/** RFC 4514 §3 names first, then registered LDAP descriptors (RFC 4519) and PKCS #9 names. */
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

/** The short name in the text form, if the type has one. */
export const shortName = (type: string): string | undefined => SHORT_NAMES.get(type);

/** The short name, or the dotted OID. */
export function attributeName(type: string): string {
  return shortName(type) ?? type;
}

/** Dotted OID from a short or long name (ignoring case) or the dotted form; undefined if unknown. */
export function attributeType(name: string): string | undefined {
  return /^[0-2](\.(0|[1-9]\d*))+$/.test(name) ? name : TYPES_BY_NAME.get(name.toLowerCase());
}
