import type { ErrorTable } from './table.ts';

/** Errors of certification requests and violations of the CA's policy. */
export const REQUEST_ERRORS = {
  AUTHORIZATION_DENIED: {
    status: 403,
    cause: 'The external service of the CA (`[ca.authorization]`) denied the request.',
    remedy: 'Ask the operator of that service. The response has its reason.',
    text: '(the reason that the service gives)',
  },
  AUTHORIZATION_FAILED: {
    status: 503,
    cause:
      'The external service of the CA returned an invalid response, none in time, or a name that the profile forbids. The log says which.',
    remedy: 'Repair the service, then send the same request again.',
  },
  CA_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR requests a CA certificate.',
    remedy: 'Omit basicConstraints.',
  },
  CERTIFICATE_LINT: {
    status: [400, 500],
    cause:
      'The certificate to sign would violate a rule of the profile, because of the CSR (400) or of the configuration of the CA (500).',
    remedy: 'Correct the CSR, or the profile of the CA. The response or the log names the rule.',
  },
  CSR_ATTRIBUTE_DIFFERS: {
    status: 400,
    cause: 'An attribute of the CSR has another value than the CA requires.',
    remedy: 'Get csrattrs and use the value in it.',
    text: "The CSR's attribute … must be …",
  },
  CSR_ATTRIBUTE_MISSING: {
    status: 400,
    cause: 'The CSR lacks an attribute that the CA requires.',
    remedy: 'Get csrattrs and add the attributes in it.',
  },
  CSR_DUPLICATE_ATTRIBUTE: {
    status: 400,
    cause: 'The CSR contains an attribute twice.',
    remedy: 'Correct the software that creates the CSR.',
  },
  CSR_DUPLICATE_EXTENSION: {
    status: 400,
    cause: 'The CSR requests an extension twice.',
    remedy: 'Correct the software that creates the CSR.',
  },
  CSR_KEY_INVALID: {
    status: 400,
    cause: 'The public key is invalid, for example a point that is not on its curve.',
    remedy: 'Generate a new key pair.',
  },
  CSR_KEY_UNSUPPORTED: {
    status: 400,
    cause: 'The server does not support this type of key, or the key cannot sign a request (ML-KEM, X25519).',
    remedy: 'Use an RSA, ECDSA, EdDSA or ML-DSA key.',
    text: "The CSR's public key …",
  },
  CSR_KEY_WEAK: {
    status: 400,
    cause: 'The key is too short or otherwise weak.',
    remedy: 'Generate a stronger key pair.',
    text: "The CSR's public key …",
  },
  CSR_MALFORMED: {
    status: 400,
    cause: 'The CSR does not have the structure that RFC 2986 or RFC 4211 defines.',
    remedy: 'Correct the software that creates the CSR.',
  },
  CSR_SAN_INVALID: {
    status: 400,
    cause: 'The CSR contains an invalid subjectAltName.',
    remedy: 'Correct the name. Write internationalized names in ASCII form.',
  },
  CSR_SECRET_NOT_FORWARDED: {
    status: 400,
    cause: 'The CSR contains a secret (RFC 7894), and the server forwards the CSR unchanged to a remote CA.',
    remedy: 'Omit otpChallenge and revocationChallenge. Send a one-time password by HTTP Basic.',
  },
  CSR_SIGNATURE_ALGORITHM: {
    status: 400,
    cause: 'The signature algorithm of the CSR is not accepted, or does not fit the key.',
    remedy: 'Sign it with SHA-256 or better.',
  },
  CSR_SIGNATURE_INVALID: {
    status: 400,
    cause: 'The CSR was changed after it was signed, or another key signed it.',
    remedy: 'Create a new CSR.',
  },
  CSR_SUBJECT_INVALID: {
    status: 400,
    cause: 'The subject of the CSR exceeds a limit or contains invalid characters.',
    remedy: 'Correct the subject.',
  },
  CSR_VERSION: {
    status: 400,
    cause: 'The version of the CSR is not the one that RFC 2986 defines.',
    remedy: 'Correct the software that creates the CSR.',
  },
  EXTENDED_KEY_USAGE_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR requests an extended key usage that the profile does not allow.',
    remedy: 'Omit it, or add it to the profile of the CA.',
  },
  EXTENSION_MALFORMED: {
    status: 400,
    cause: 'The CSR requests an extension that cannot be parsed.',
    remedy: 'Correct the software that creates the CSR.',
  },
  EXTENSION_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR requests a critical extension that the CA does not issue, or an extension of more than 4096 bytes.',
    remedy: 'Omit it.',
  },
  KEY_TYPE_NOT_ALLOWED: {
    status: 400,
    cause: 'The profile of the CA does not allow this type or size of key.',
    remedy: 'Use a key type from the profile, or extend the profile.',
  },
  KEY_USAGE_IMPOSSIBLE: {
    status: 400,
    cause: 'The key does not support the key usage of the profile.',
    remedy: 'Use another type of key, or another CA.',
  },
  KEY_USAGE_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR requests a key usage that the profile does not allow.',
    remedy: 'Omit it, or add it to the profile of the CA.',
  },
  PUBLIC_KEY_MALFORMED: {
    status: 400,
    cause: 'The public key cannot be parsed.',
    remedy: 'Generate a new key pair.',
  },
  SAN_MISSING: {
    status: 400,
    cause: 'The profile requires a type of alternative name that the CSR lacks.',
    remedy: 'Add a name of this type.',
  },
  SAN_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR contains too many alternative names, or one that the profile does not allow.',
    remedy: 'Omit it, or allow it in the profile of the CA.',
  },
  SUBJECT_MISSING: { status: 400, cause: 'The CSR contains no name.', remedy: 'Add a subject or a subjectAltName.' },
  SUBJECT_NOT_ALLOWED: {
    status: 400,
    cause: 'The profile does not allow the subject.',
    remedy: 'Correct the subject, or the profile of the CA.',
  },
  SUBJECT_NOT_IN_CSR: {
    status: 403,
    cause: 'The remote CA uses the subject of the CSR, and the requester may not have this subject.',
    remedy: 'Put the subject that the requester is mapped to into the CSR.',
  },
} as const satisfies ErrorTable;
