import type { ErrorTable } from './table.ts';

/** What the CA, its key or the hardware that holds it fails at. */
export const CA_ERRORS = {
  CA_BUSY: {
    status: 503,
    cause: 'The CA behind asks for patience.',
    remedy: 'Try again after the seconds of Retry-After.',
  },
  CA_CERTIFICATE_MISSING: {
    status: 500,
    cause: 'The CA behind says that it issued and gives no certificate.',
    remedy: 'Look at the request at the CA; the log has its identifier.',
  },
  CA_ISSUED_OTHER: {
    status: 500,
    cause: 'The CA behind issued another key or name than was asked for, so the certificate is not handed out.',
    remedy: "Revoke that certificate and correct the CA's profile; the log has the serial number.",
  },
  CA_NOT_VALID: {
    status: 500,
    cause: "The CA's own certificate is outside of its validity.",
    remedy: 'Renew it (docs/rollover.md).',
  },
  CA_PROFILE_UNREADABLE: {
    status: 500,
    cause: 'The CA behind does not show the profile that is configured.',
    remedy: "Correct the profile's name, or the agent's rights at the CA.",
  },
  CA_PROFILE_UNSUITABLE: {
    status: 500,
    cause: 'The profile of the CA behind takes no certification request.',
    remedy: 'Configure a profile for enrolment by CSR.',
  },
  CA_QUEUED_GENERATED_KEY: {
    status: 500,
    cause: 'The CA behind queued a request whose key the server generated, which cannot wait.',
    remedy: 'Use a profile that issues at once for serverkeygen.',
  },
  CA_REFUSED: {
    status: 500,
    cause: 'The CA behind does not process the request.',
    remedy: 'Look for its words in the log.',
  },
  CA_REJECTED: {
    status: 403,
    cause: 'The CA behind, or its agent, rejected the request.',
    remedy: "Ask the CA's agents for their reason.",
    text: "(the CA's reason)",
  },
  CA_REVOCATION_FAILED: {
    status: 500,
    cause: 'The CA behind did not revoke the certificate.',
    remedy: 'Look for its words in the log and revoke there.',
  },
  CA_SEARCH_TOO_LARGE: {
    status: 500,
    cause: 'A lost request is looked for at the CA among more requests than are searched.',
    remedy: "Look for it by hand; the log has the key's digest.",
  },
  UPSTREAM_BAD_REQUEST: {
    status: 400,
    cause: 'The upstream CA rejected the CSR as malformed; its text is the message.',
    remedy: 'Correct the CSR as the text says.',
    text: "(the upstream CA's text)",
  },
  UPSTREAM_FAILED: {
    status: 500,
    cause: 'The upstream CA failed, or refused this server itself; the log has its answer.',
    remedy: 'Check url, credentials and trust anchors of the upstream CA; run `estuary doctor`.',
  },
  UPSTREAM_FORBIDDEN: {
    status: 403,
    cause: 'The upstream CA rejected the request; its text is the message.',
    remedy: 'Ask for names and a key that the upstream CA allows.',
    text: "(the upstream CA's text)",
  },
  UPSTREAM_NAMES: {
    status: 400,
    cause: 'The CA is behind an ACME server, which certifies DNS names and IP addresses in the subjectAltName only.',
    remedy: 'Ask for these kinds of names, and for a common name that is one of them.',
  },
  CA_SIGNATURE_FAILED: {
    status: 500,
    cause: "The CA's key did not sign.",
    remedy: 'Look for the reason in the log, and check the key.',
  },
  CA_SIGNING_FAILED: {
    status: 500,
    cause: 'The CA failed for a reason that nobody foresaw.',
    remedy: 'Look for the error in the log.',
  },
  CA_UNAVAILABLE: {
    status: 503,
    cause: 'The CA, or every replica of it, is out of reach.',
    remedy: 'Try again after the seconds of Retry-After; look at the CA.',
  },
  CERTIFICATE_UNKNOWN_TO_CA: {
    status: 404,
    cause: 'The CA behind has no certificate with this serial number.',
    remedy: "Compare the CA's label and the serial number.",
  },
  ISSUED_TWICE: {
    status: 500,
    cause: 'A certificate was about to be signed a second time.',
    remedy: 'Report it: no configuration can bring it about.',
  },
  OCSP_BUSY: {
    status: 503,
    cause: 'More OCSP requests wait for a signature than the bound allows.',
    remedy: 'Try again later; responses that are cached are still served.',
    text: 'There are more OCSP requests than can be answered.',
  },
  PKCS11_BUSY: {
    status: 503,
    cause: 'All sessions of the token are in use, and as many calls wait as may.',
    remedy: "Try again after the seconds of Retry-After; raise the token's sessions where it lasts.",
  },
  PKCS11_DOWN: {
    status: 503,
    cause: 'The process that holds the token is being started anew.',
    remedy: 'Try again after the seconds of Retry-After; where it lasts, look at the token.',
    text: 'The hardware security module is temporarily unavailable',
  },
  PKCS11_FAILED: {
    status: 500,
    cause: 'The token answered a signature with an error, or its process ended.',
    remedy: 'Look for the CKR_ code in the log.',
  },
  PKCS11_TIMEOUT: {
    status: 500,
    cause: 'The token did not answer in time; its process is started anew.',
    remedy: 'Look at the token and the way to it.',
    text: 'The hardware security module failed',
  },
  REASON_UNKNOWN: {
    status: 500,
    cause: 'The reason of a revocation is none that the CA behind knows.',
    remedy: 'Revoke for another reason of RFC 5280 §5.3.1.',
  },
  SERIAL_EXHAUSTED: {
    status: 500,
    cause: 'Serial numbers drawn at random were all taken.',
    remedy: 'Look at the store and the source of randomness: chance does not do this.',
  },
  CA_UNUSABLE: {
    status: 500,
    cause:
      'A certificate, key, token or chain that the configuration gives a CA cannot be used, so the server does not start.',
    remedy: 'Correct the key of the configuration that the message names, or its file.',
  },
  CMC_SIGNER_UNUSABLE: {
    status: 500,
    cause: 'The key of the CMC responder cannot sign CMC content.',
    remedy:
      'Give the responder that cmc.certificate and cmc.private_key name a key that signs: RSA, EC, EdDSA or ML-DSA.',
  },
} as const satisfies ErrorTable;
