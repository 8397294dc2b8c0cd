import { OID } from '../der/oids.ts';

/**
 * The most characters a value of these attribute types may have, by dotted OID: RFC 5280 appendix A.1 ("Upper
 * Bounds"), where surname, givenName, initials and generationQualifier are X520name; X.520 for what it does not list;
 * PKCS #9 for its own; RFC 1274 §9.3.1 for userId.
 */
export const UPPER_BOUNDS: ReadonlyMap<string, number> = new Map([
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
