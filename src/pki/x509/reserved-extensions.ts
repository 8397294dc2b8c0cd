/** Extensions that no profile may set or copy: they make a CA, or Estuary sets them itself. */
import { OID, oidName } from '../der/oids.ts';

const forCas = 'is for CA certificates alone';
const forLists = 'is for CRLs alone';
const ownKey = (key: string): string => `is set by Estuary itself (${key})`;

const RESERVED: ReadonlyMap<string, string> = new Map<string, string>([
  [OID.basicConstraints, ownKey('never a CA')],
  [OID.nameConstraints, forCas],
  [OID.policyConstraints, forCas],
  [OID.policyMappings, forCas],
  [OID.inhibitAnyPolicy, forCas],
  [OID.netscapeCertType, 'may make a CA of a certificate'],
  [OID.microsoftCaVersion, forCas],
  [OID.proxyCertInfo, 'lets a certificate issue further ones (RFC 3820)'],
  [OID.precertificatePoison, 'makes the certificate invalid (RFC 6962)'],
  [OID.keyUsage, ownKey('key_usage')],
  [OID.extKeyUsage, ownKey('extended_key_usage')],
  [OID.microsoftApplicationPolicies, 'stands in for extKeyUsage (extended_key_usage)'],
  [OID.subjectAltName, ownKey('san')],
  [OID.issuerAltName, 'is a name of the CA, which its certificate tells'],
  [OID.certificatePolicies, ownKey('policies')],
  [OID.subjectKeyIdentifier, ownKey('from the key')],
  [OID.authorityKeyIdentifier, ownKey("from the CA's key")],
  [OID.cRLDistributionPoints, ownKey('publication')],
  [OID.freshestCRL, 'is a place of revocation data, which Estuary sets itself (publication)'],
  [OID.authorityInfoAccess, ownKey('publication')],
  [OID.ocspNoCheck, 'exempts a certificate from revocation'],
  [OID.cRLNumber, forLists],
  [OID.cRLReason, forLists],
  [OID.invalidityDate, forLists],
  [OID.deltaCRLIndicator, forLists],
  [OID.issuingDistributionPoint, forLists],
  [OID.certificateIssuer, forLists],
]);

/** The bound on one extension's value, octets. */
export const MAX_EXTENSION_LENGTH = 4096;

/** Why a profile may not set or copy the extension, as a clause that names it; undefined where it may. */
export function reservedExtension(dotted: string): string | undefined {
  const reason = RESERVED.get(dotted);
  return reason === undefined ? undefined : `${oidName(dotted)} ${reason}`;
}
