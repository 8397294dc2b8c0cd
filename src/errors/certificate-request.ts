import type { ErrorTable } from './table.ts';

/** What is wrong with a certification request, or against the policy of the CA. */
export const REQUEST_ERRORS = {
  AUTHORIZATION_DENIED: {
    status: 403,
    cause: 'The external service of the CA (`[ca.authorization]`) refuses the request.',
    remedy: 'Ask whoever runs that service; the answer has its reason.',
    text: '(the reason that the service gives)',
  },
  AUTHORIZATION_FAILED: {
    status: 503,
    cause:
      'The external service of the CA did not answer as it has to, or allowed what the profile does not; the log says which.',
    remedy: 'Mend the service; the same request may be sent again.',
  },
  CA_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR asks for a certificate of a CA.',
    remedy: 'Leave basicConstraints out.',
  },
  CERTIFICATE_LINT: {
    status: [400, 500],
    cause:
      "The certificate to sign would break a rule of the profile: by what the CSR asks for (400), or by the CA's own configuration (500).",
    remedy: "Correct the CSR, or the CA's profile; the rule is named in the answer or the log.",
  },
  CSR_ATTRIBUTE_DIFFERS: {
    status: 400,
    cause: 'An attribute of the CSR has another value than the CA asks for.',
    remedy: 'Get csrattrs and use the value that it gives.',
    text: "The CSR's attribute … must be …",
  },
  CSR_ATTRIBUTE_MISSING: {
    status: 400,
    cause: 'The CSR leaves out an attribute that the CA asks for.',
    remedy: 'Get csrattrs and add what it lists.',
  },
  CSR_DUPLICATE_ATTRIBUTE: {
    status: 400,
    cause: 'The CSR has an attribute twice.',
    remedy: 'Correct what builds the CSR.',
  },
  CSR_DUPLICATE_EXTENSION: {
    status: 400,
    cause: 'The CSR asks for an extension twice.',
    remedy: 'Correct what builds the CSR.',
  },
  CSR_KEY_INVALID: {
    status: 400,
    cause: 'The public key is no key, for example a point off its curve.',
    remedy: 'Make a new key pair.',
  },
  CSR_KEY_UNSUPPORTED: {
    status: 400,
    cause:
      'The key is of a kind that is not certified, or one that signs nothing (ML-KEM, X25519), so that no request can be made with it.',
    remedy: 'Use an RSA, ECDSA, EdDSA or ML-DSA key.',
    text: "The CSR's public key …",
  },
  CSR_KEY_WEAK: {
    status: 400,
    cause: 'The key is too short or otherwise weak.',
    remedy: 'Make a stronger key pair.',
    text: "The CSR's public key …",
  },
  CSR_MALFORMED: {
    status: 400,
    cause: 'The CSR is not the structure that RFC 2986 (or RFC 4211) describes.',
    remedy: 'Correct what builds the CSR.',
  },
  CSR_SAN_INVALID: {
    status: 400,
    cause: 'A subject alternative name of the CSR is none.',
    remedy: 'Correct the name; internationalised ones go in their ASCII form.',
  },
  CSR_SECRET_NOT_FORWARDED: {
    status: 400,
    cause: 'The CSR holds a secret of RFC 7894, and goes on to a CA elsewhere as it was signed.',
    remedy: 'Leave otpChallenge and revocationChallenge out; send a one-time password by HTTP Basic.',
  },
  CSR_SIGNATURE_ALGORITHM: {
    status: 400,
    cause: 'The CSR is signed by an algorithm that is not accepted or does not fit the key.',
    remedy: 'Sign it with SHA-256 or better.',
  },
  CSR_SIGNATURE_INVALID: {
    status: 400,
    cause: 'The CSR was changed after it was signed, or signed by another key.',
    remedy: 'Build the CSR anew.',
  },
  CSR_SUBJECT_INVALID: {
    status: 400,
    cause: 'The subject of the CSR breaks a bound or holds characters that are not allowed.',
    remedy: 'Correct the subject.',
  },
  CSR_VERSION: {
    status: 400,
    cause: 'The CSR has another version than RFC 2986 defines.',
    remedy: 'Correct what builds the CSR.',
  },
  EXTENDED_KEY_USAGE_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR asks for an extended key usage that the profile does not give.',
    remedy: "Leave it out, or add it to the CA's profile.",
  },
  EXTENSION_MALFORMED: {
    status: 400,
    cause: 'An extension that the CSR asks for cannot be read.',
    remedy: 'Correct what builds the CSR.',
  },
  EXTENSION_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR asks for a critical extension that is not issued, or for one of more than 4096 bytes.',
    remedy: 'Leave it out.',
  },
  KEY_TYPE_NOT_ALLOWED: {
    status: 400,
    cause: "The CA's profile does not take this kind or size of key.",
    remedy: "Use a key of the profile's list, or extend the list.",
  },
  KEY_USAGE_IMPOSSIBLE: {
    status: 400,
    cause: 'The key cannot do what the profile certifies keys for.',
    remedy: 'Use another kind of key, or another CA.',
  },
  KEY_USAGE_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR asks for a key usage that the profile does not give.',
    remedy: "Leave it out, or add it to the CA's profile.",
  },
  PUBLIC_KEY_MALFORMED: {
    status: 400,
    cause: 'The public key to certify cannot be read.',
    remedy: 'Make a new key pair.',
  },
  SAN_MISSING: {
    status: 400,
    cause: 'The profile asks for an alternative name of a kind that the CSR lacks.',
    remedy: 'Add one.',
  },
  SAN_NOT_ALLOWED: {
    status: 400,
    cause: 'The CSR has too many alternative names, or one that the profile does not allow.',
    remedy: "Leave it out, or allow it in the CA's profile.",
  },
  SUBJECT_MISSING: { status: 400, cause: 'The CSR names nobody.', remedy: 'Add a subject or a subjectAltName.' },
  SUBJECT_NOT_ALLOWED: {
    status: 400,
    cause: 'The profile does not allow the subject.',
    remedy: "Correct the subject, or the CA's profile.",
  },
  SUBJECT_NOT_IN_CSR: {
    status: 403,
    cause: 'The CA behind takes the subject from the CSR only, and it is not the one the requester may have.',
    remedy: 'Ask in the CSR for the subject that the requester is mapped to.',
  },
} as const satisfies ErrorTable;
