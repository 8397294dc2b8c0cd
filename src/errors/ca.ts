import type { ErrorTable } from './table.ts';

/** Errors of a CA, its key, or the hardware that holds it. */
export const CA_ERRORS = {
  CA_BUSY: {
    status: 503,
    cause: 'The remote CA is busy.',
    remedy: 'Retry after the seconds in Retry-After.',
  },
  CA_CERTIFICATE_MISSING: {
    status: 500,
    cause: 'The remote CA reports that it issued a certificate, but returns none.',
    remedy: 'Check the request at the CA. The log has its identifier.',
  },
  CA_ISSUED_OTHER: {
    status: 500,
    cause: 'The remote CA issued another key or name than requested, so the certificate is not delivered.',
    remedy: "Revoke that certificate and correct the CA's profile. The log has the serial number.",
  },
  CA_NOT_VALID: {
    status: 500,
    cause: 'The CA certificate has expired or is not yet valid.',
    remedy: 'Renew it (docs/guides/rollover.md).',
  },
  CA_PROFILE_UNREADABLE: {
    status: 500,
    cause: 'The remote CA does not return the configured profile.',
    remedy: 'Correct the name of the profile, or the permissions of the agent.',
  },
  CA_PROFILE_UNSUITABLE: {
    status: 500,
    cause: 'The profile of the remote CA does not accept CSRs.',
    remedy: 'Configure a profile for enrollment by CSR.',
  },
  CA_QUEUED_GENERATED_KEY: {
    status: 500,
    cause: 'The remote CA queued a request with a server-generated key, which cannot wait.',
    remedy: 'Use a profile that issues immediately for serverkeygen.',
  },
  CA_REFUSED: {
    status: 500,
    cause: 'The remote CA does not process the request.',
    remedy: 'Check the log for its message.',
  },
  CA_REJECTED: {
    status: 403,
    cause: 'The remote CA, or an agent of it, rejected the request.',
    remedy: 'Ask the agents of the CA for the reason.',
    text: "(the CA's reason)",
  },
  CA_REVOCATION_FAILED: {
    status: 500,
    cause: 'The remote CA did not revoke the certificate.',
    remedy: 'Check the log for its message, and revoke there.',
  },
  CA_SEARCH_TOO_LARGE: {
    status: 500,
    cause: 'The search for a lost request at the CA exceeded its limit.',
    remedy: 'Find it manually. The log has the digest of the key.',
  },
  UPSTREAM_BAD_REQUEST: {
    status: 400,
    cause: 'The upstream CA rejected the CSR as malformed. The message is its text.',
    remedy: 'Correct the CSR as the text says.',
    text: "(the upstream CA's text)",
  },
  UPSTREAM_FAILED: {
    status: 500,
    cause: 'The upstream CA failed, or rejected the credentials of this server. The log has its response.',
    remedy: 'Check url, credentials and trust anchors of the upstream CA. Run `estuary doctor`.',
  },
  UPSTREAM_FORBIDDEN: {
    status: 403,
    cause: 'The upstream CA rejected the request. The message is its text.',
    remedy: 'Request names and a key that the upstream CA allows.',
    text: "(the upstream CA's text)",
  },
  UPSTREAM_NAMES: {
    status: 400,
    cause: 'The upstream CA uses ACME, which supports only DNS names and IP addresses in the subjectAltName.',
    remedy: 'Request only these names, and a common name that is one of them.',
  },
  CA_SIGNATURE_FAILED: {
    status: 500,
    cause: 'The CA key failed to sign.',
    remedy: 'Check the log for the reason, and check the key.',
  },
  CA_SIGNING_FAILED: {
    status: 500,
    cause: 'The CA failed unexpectedly.',
    remedy: 'Check the log for the error.',
  },
  CA_UNAVAILABLE: {
    status: 503,
    cause: 'The CA, or every replica of it, is unreachable.',
    remedy: 'Retry after the seconds in Retry-After. Check the CA.',
  },
  CERTIFICATE_UNKNOWN_TO_CA: {
    status: 404,
    cause: 'The remote CA has no certificate with this serial number.',
    remedy: 'Check the label of the CA and the serial number.',
  },
  ISSUED_TWICE: {
    status: 500,
    cause: 'The server was about to sign a certificate a second time.',
    remedy: 'Report this defect. No configuration can cause it.',
  },
  OCSP_BUSY: {
    status: 503,
    cause: 'The queue of OCSP responses to sign is full.',
    remedy: 'Try again later. The server still serves cached responses.',
    text: 'Too many OCSP requests. Try again later.',
  },
  PKCS11_BUSY: {
    status: 503,
    cause: 'All sessions of the token are in use, and the queue is full.',
    remedy: 'Retry after the seconds in Retry-After. If it lasts, raise the number of sessions.',
  },
  PKCS11_DOWN: {
    status: 503,
    cause: 'The process that uses the token is restarting.',
    remedy: 'Retry after the seconds in Retry-After. If it lasts, check the token.',
    text: 'The hardware security module is temporarily unavailable',
  },
  PKCS11_FAILED: {
    status: 500,
    cause: 'The token failed to sign, or its process stopped.',
    remedy: 'Check the log for the CKR_ code.',
  },
  PKCS11_TIMEOUT: {
    status: 500,
    cause: 'The token did not respond in time. Its process restarts.',
    remedy: 'Check the token and the connection to it.',
    text: 'The hardware security module failed',
  },
  REASON_UNKNOWN: {
    status: 500,
    cause: 'The remote CA does not support the revocation reason.',
    remedy: 'Use another reason from RFC 5280 section 5.3.1.',
  },
  SERIAL_EXHAUSTED: {
    status: 500,
    cause: 'Every randomly chosen serial number was already in use.',
    remedy: 'Check the store and the source of randomness. This does not happen by chance.',
  },
  CA_UNUSABLE: {
    status: 500,
    cause: 'A certificate, key, token or chain of a CA in the configuration is unusable, so the server does not start.',
    remedy: 'Correct the configuration key that the message names, or its file.',
  },
  CMC_SIGNER_UNUSABLE: {
    status: 500,
    cause: 'The key of the CMC responder cannot sign CMC content.',
    remedy:
      'Give the responder that cmc.certificate and cmc.private_key name a key that signs: RSA, EC, EdDSA or ML-DSA.',
  },
} as const satisfies ErrorTable;
