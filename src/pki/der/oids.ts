/** Object identifiers in dotted form, by their names in the standards. */
export const OID = {
  // attribute types (RFC 4519, RFC 5280 appendix A, PKCS #9)
  commonName: '2.5.4.3',
  surname: '2.5.4.4',
  serialNumber: '2.5.4.5',
  countryName: '2.5.4.6',
  localityName: '2.5.4.7',
  stateOrProvinceName: '2.5.4.8',
  streetAddress: '2.5.4.9',
  organizationName: '2.5.4.10',
  organizationalUnitName: '2.5.4.11',
  title: '2.5.4.12',
  description: '2.5.4.13',
  businessCategory: '2.5.4.15',
  postalCode: '2.5.4.17',
  name: '2.5.4.41',
  givenName: '2.5.4.42',
  initials: '2.5.4.43',
  generationQualifier: '2.5.4.44',
  x500UniqueIdentifier: '2.5.4.45',
  dnQualifier: '2.5.4.46',
  pseudonym: '2.5.4.65',
  organizationIdentifier: '2.5.4.97',
  userId: '0.9.2342.19200300.100.1.1',
  domainComponent: '0.9.2342.19200300.100.1.25',
  emailAddress: '1.2.840.113549.1.9.1',
  unstructuredName: '1.2.840.113549.1.9.2',
  unstructuredAddress: '1.2.840.113549.1.9.8',

  // CSR attributes
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  signingTime: '1.2.840.113549.1.9.5',
  challengePassword: '1.2.840.113549.1.9.7',
  otpChallenge: '1.2.840.113549.1.9.16.2.56',
  revocationChallenge: '1.2.840.113549.1.9.16.2.57',
  estIdentityLinking: '1.2.840.113549.1.9.16.2.58',
  extensionRequest: '1.2.840.113549.1.9.14',
  smimeCapabilities: '1.2.840.113549.1.9.15',
  microsoftExtensionRequest: '1.3.6.1.4.1.311.2.1.14',
  /** RFC 4108 §3.1.4, used by RFC 7030 §4.4.1.1. */
  decryptKeyIdentifier: '1.2.840.113549.1.9.16.2.37',
  /** RFC 7030 §4.4.1.2. */
  asymmetricDecryptKeyIdentifier: '1.2.840.113549.1.9.16.2.54',
  /** RFC 9908 §3.4. */
  certificationRequestInfoTemplate: '1.2.840.113549.1.9.16.2.61',
  extensionReqTemplate: '1.2.840.113549.1.9.16.2.62',
  /** RFC 6402 §2.8. */
  changeSubjectName: '1.3.6.1.5.5.7.7.36',
  /** RFC 5272 §3.2.3. */
  cmcUnsignedData: '1.2.840.113549.1.9.16.2.34',

  // CMC controls (RFC 5272 §6, RFC 6402 §2.2)
  statusInfo: '1.3.6.1.5.5.7.7.1',
  identification: '1.3.6.1.5.5.7.7.2',
  identityProof: '1.3.6.1.5.5.7.7.3',
  dataReturn: '1.3.6.1.5.5.7.7.4',
  transactionId: '1.3.6.1.5.5.7.7.5',
  senderNonce: '1.3.6.1.5.5.7.7.6',
  recipientNonce: '1.3.6.1.5.5.7.7.7',
  lraPOPWitness: '1.3.6.1.5.5.7.7.11',
  getCert: '1.3.6.1.5.5.7.7.15',
  getCRL: '1.3.6.1.5.5.7.7.16',
  revokeRequest: '1.3.6.1.5.5.7.7.17',
  regInfo: '1.3.6.1.5.5.7.7.18',
  queryPending: '1.3.6.1.5.5.7.7.21',
  popLinkRandom: '1.3.6.1.5.5.7.7.22',
  confirmCertAcceptance: '1.3.6.1.5.5.7.7.24',
  statusInfoV2: '1.3.6.1.5.5.7.7.25',
  batchRequests: '1.3.6.1.5.5.7.7.28',
  batchResponses: '1.3.6.1.5.5.7.7.29',
  controlProcessed: '1.3.6.1.5.5.7.7.32',
  popLinkWitnessV2: '1.3.6.1.5.5.7.7.33',
  identityProofV2: '1.3.6.1.5.5.7.7.34',
  raIdentityWitness: '1.3.6.1.5.5.7.7.35',

  // certificate and CRL extensions (RFC 5280 §4.2, §5.2, §5.3)
  subjectDirectoryAttributes: '2.5.29.9',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  issuerAltName: '2.5.29.18',
  basicConstraints: '2.5.29.19',
  cRLNumber: '2.5.29.20',
  cRLReason: '2.5.29.21',
  invalidityDate: '2.5.29.24',
  deltaCRLIndicator: '2.5.29.27',
  issuingDistributionPoint: '2.5.29.28',
  certificateIssuer: '2.5.29.29',
  nameConstraints: '2.5.29.30',
  cRLDistributionPoints: '2.5.29.31',
  certificatePolicies: '2.5.29.32',
  policyMappings: '2.5.29.33',
  authorityKeyIdentifier: '2.5.29.35',
  policyConstraints: '2.5.29.36',
  extKeyUsage: '2.5.29.37',
  freshestCRL: '2.5.29.46',
  inhibitAnyPolicy: '2.5.29.54',
  authorityInfoAccess: '1.3.6.1.5.5.7.1.1',
  subjectInfoAccess: '1.3.6.1.5.5.7.1.11',
  tlsFeature: '1.3.6.1.5.5.7.1.24',
  proxyCertInfo: '1.3.6.1.5.5.7.1.14',
  netscapeCertType: '2.16.840.1.113730.1.1',
  precertificatePoison: '1.3.6.1.4.1.11129.2.4.3',
  microsoftCaVersion: '1.3.6.1.4.1.311.21.1',
  microsoftApplicationPolicies: '1.3.6.1.4.1.311.21.10',
  microsoftSid: '1.3.6.1.4.1.311.25.2',

  // certificate policies (RFC 5280 §4.2.1.4)
  anyPolicy: '2.5.29.32.0',
  cpsQualifier: '1.3.6.1.5.5.7.2.1',

  // name forms (RFC 9598)
  permanentIdentifier: '1.3.6.1.5.5.7.8.3',
  hardwareModuleName: '1.3.6.1.5.5.7.8.4',
  dnsSrv: '1.3.6.1.5.5.7.8.7',
  smtpUTF8Mailbox: '1.3.6.1.5.5.7.8.9',
  userPrincipalName: '1.3.6.1.4.1.311.20.2.3',

  // key purposes (RFC 5280 §4.2.1.12, RFC 6402 §2.10)
  anyExtendedKeyUsage: '2.5.29.37.0',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  codeSigning: '1.3.6.1.5.5.7.3.3',
  emailProtection: '1.3.6.1.5.5.7.3.4',
  ipsecEndSystem: '1.3.6.1.5.5.7.3.5',
  ipsecTunnel: '1.3.6.1.5.5.7.3.6',
  ipsecUser: '1.3.6.1.5.5.7.3.7',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  OCSPSigning: '1.3.6.1.5.5.7.3.9',
  eapOverPPP: '1.3.6.1.5.5.7.3.13',
  eapOverLAN: '1.3.6.1.5.5.7.3.14',
  ipsecIKE: '1.3.6.1.5.5.7.3.17',
  cmcCA: '1.3.6.1.5.5.7.3.27',
  cmcRA: '1.3.6.1.5.5.7.3.28',
  cmcArchive: '1.3.6.1.5.5.7.3.29',
  pkinitClientAuth: '1.3.6.1.5.2.3.4',
  smartcardLogon: '1.3.6.1.4.1.311.20.2.2',
  ocspBasic: '1.3.6.1.5.5.7.48.1.1',
  ocspNonce: '1.3.6.1.5.5.7.48.1.2',
  ocspNoCheck: '1.3.6.1.5.5.7.48.1.5',

  // access methods
  ocsp: '1.3.6.1.5.5.7.48.1',
  caIssuers: '1.3.6.1.5.5.7.48.2',

  // public keys
  rsaEncryption: '1.2.840.113549.1.1.1',
  rsaOAEP: '1.2.840.113549.1.1.7',
  ecPublicKey: '1.2.840.10045.2.1',
  ed25519: '1.3.101.112',
  ed448: '1.3.101.113',
  'id-ml-dsa-44': '2.16.840.1.101.3.4.3.17',
  'id-ml-dsa-65': '2.16.840.1.101.3.4.3.18',
  'id-ml-dsa-87': '2.16.840.1.101.3.4.3.19',
  x25519: '1.3.101.110',
  x448: '1.3.101.111',
  secp256r1: '1.2.840.10045.3.1.7',
  secp384r1: '1.3.132.0.34',
  secp521r1: '1.3.132.0.35',

  // signatures
  sha1WithRSAEncryption: '1.2.840.113549.1.1.5',
  sha256WithRSAEncryption: '1.2.840.113549.1.1.11',
  sha384WithRSAEncryption: '1.2.840.113549.1.1.12',
  sha512WithRSAEncryption: '1.2.840.113549.1.1.13',
  rsassaPss: '1.2.840.113549.1.1.10',
  mgf1: '1.2.840.113549.1.1.8',
  ecdsaWithSHA1: '1.2.840.10045.4.1',
  ecdsaWithSHA256: '1.2.840.10045.4.3.2',
  ecdsaWithSHA384: '1.2.840.10045.4.3.3',
  ecdsaWithSHA512: '1.2.840.10045.4.3.4',

  // encryption (RFC 3565, RFC 3394, RFC 5753, RFC 8018)
  aes128CBC: '2.16.840.1.101.3.4.1.2',
  aes192CBC: '2.16.840.1.101.3.4.1.22',
  aes256CBC: '2.16.840.1.101.3.4.1.42',
  aes128Wrap: '2.16.840.1.101.3.4.1.5',
  aes192Wrap: '2.16.840.1.101.3.4.1.25',
  aes256Wrap: '2.16.840.1.101.3.4.1.45',
  dhSinglePassStdDHSha1Kdf: '1.3.133.16.840.63.0.2',
  dhSinglePassStdDHSha256Kdf: '1.3.132.1.11.1',
  dhSinglePassStdDHSha384Kdf: '1.3.132.1.11.2',
  dhSinglePassStdDHSha512Kdf: '1.3.132.1.11.3',
  /** RFC 3211 §2.3, RFC 3370 §4.3.2. */
  pwriKek: '1.2.840.113549.1.9.16.3.9',
  pbes2: '1.2.840.113549.1.5.13',
  pbkdf2: '1.2.840.113549.1.5.12',
  hmacWithSHA1: '1.2.840.113549.2.7',
  hmacWithSHA256: '1.2.840.113549.2.9',
  hmacWithSHA384: '1.2.840.113549.2.10',
  hmacWithSHA512: '1.2.840.113549.2.11',

  // digests
  sha1: '1.3.14.3.2.26',
  sha256: '2.16.840.1.101.3.4.2.1',
  sha384: '2.16.840.1.101.3.4.2.2',
  sha512: '2.16.840.1.101.3.4.2.3',
  shake256: '2.16.840.1.101.3.4.2.12',

  // CMS content types
  data: '1.2.840.113549.1.7.1',
  signedData: '1.2.840.113549.1.7.2',
  envelopedData: '1.2.840.113549.1.7.3',
  authenticatedData: '1.2.840.113549.1.9.16.1.2',
  /** id-cct-PKIData and id-cct-PKIResponse (RFC 5272 §3.2.1, §4.2.1). */
  pkiData: '1.3.6.1.5.5.7.12.2',
  pkiResponse: '1.3.6.1.5.5.7.12.3',
  /** id-ct-KP-aKeyPackage (RFC 5958 §2). */
  asymmetricKeyPackage: '2.16.840.1.101.2.1.2.78.5',
} as const;

const namesByOid = new Map<string, string>(Object.entries(OID).map(([name, dotted]) => [dotted, name]));
const oidsByName = new Map<string, string>(Object.entries(OID).map(([name, dotted]) => [name.toLowerCase(), dotted]));

/** The standard name of an OID, or the dotted form if the OID is unknown. */
export function oidName(dotted: string): string {
  return namesByOid.get(dotted) ?? dotted;
}

/** The dotted form of a name in {@link OID} (ignoring case) or of a dotted OID; undefined if it is neither. */
export function oidByName(nameOrOid: string): string | undefined {
  return /^[0-2](\.(0|[1-9]\d*))+$/.test(nameOrOid) ? nameOrOid : oidsByName.get(nameOrOid.toLowerCase());
}

/** The first OID that occurs twice, if any. */
export function firstRepeated(oids: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return oids.find((oid) => seen.size === seen.add(oid).size);
}
