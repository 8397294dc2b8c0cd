import { OID } from './oids.ts';

/**
 * The most characters a value of these attribute types may have: RFC 5280 appendix A.1 ("Upper Bounds"), PKCS #9 for
 * emailAddress, RFC 1274 §9.3.1 for userId.
 */
export const UPPER_BOUNDS: ReadonlyMap<string, number> = new Map([
  [OID.commonName, 64],
  [OID.surname, 40],
  [OID.serialNumber, 64],
  [OID.countryName, 2],
  [OID.localityName, 128],
  [OID.stateOrProvinceName, 128],
  [OID.organizationName, 64],
  [OID.organizationalUnitName, 64],
  [OID.title, 64],
  [OID.name, 32_768],
  [OID.givenName, 32_768],
  [OID.initials, 32_768],
  [OID.generationQualifier, 32_768],
  [OID.pseudonym, 128],
  [OID.emailAddress, 255],
  [OID.userId, 256],
]);
