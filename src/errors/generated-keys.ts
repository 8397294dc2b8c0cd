import type { ErrorTable } from './table.ts';

/** What keeps a key from being generated, protected, archived or delivered (RFC 7030 §4.4). */
export const GENERATED_KEY_ERRORS = {
  CAPABILITIES_MALFORMED: {
    status: 400,
    cause: "The CSR's SMIMECapabilities cannot be read.",
    remedy: 'Correct what builds the CSR.',
  },
  CAPABILITIES_WITHOUT_OVERLAP: {
    status: 400,
    cause: 'The client cannot decrypt by any algorithm that the server encrypts keys with.',
    remedy: "Add the algorithm to the client's capabilities.",
  },
  CLIENT_GONE: {
    status: 503,
    cause: 'The client closed its connection while its key was made, so nothing was issued.',
    remedy: 'Send the request again, and let the client wait longer.',
  },
  KEY_ARCHIVAL_FAILED: {
    status: 500,
    cause: 'The generated key could not be archived, so no certificate was issued.',
    remedy: 'Look for the reason in the log, and restore the archive.',
  },
  KEY_ARCHIVE_MISSING: {
    status: 500,
    cause: 'The CA archives keys, and has no archive to do so.',
    remedy: 'Configure the archive of this CA.',
  },
  KEY_ARCHIVE_UNAVAILABLE: {
    status: 503,
    cause: 'No replica of the key archive can be reached.',
    remedy: 'Try again after the seconds of Retry-After; look at the archive.',
  },
  KEY_ENCRYPTION_REQUIRED: {
    status: 400,
    cause:
      'The configuration requires encrypted keys (`serverkeygen.encryption = "required"`), and the CSR names no key to encrypt to.',
    remedy: 'Add DecryptKeyIdentifier or AsymmetricDecryptKeyIdentifier to the CSR.',
  },
  KEY_FORM_UNSUPPORTED: {
    status: 400,
    cause: 'The CA cannot sign the package that an encrypted key is sent in.',
    remedy: 'Use another CA, or a CSR without a key identifier.',
  },
  KEY_GENERATION_BUSY: {
    status: 503,
    cause: 'Too many requests wait for a generated key, or this one waited for 10 seconds.',
    remedy: 'Try again after the seconds of Retry-After.',
  },
  KEY_IDENTIFIER_AMBIGUOUS: { status: 400, cause: 'The CSR names two keys to encrypt with.', remedy: 'Name one.' },
  KEY_IDENTIFIER_MALFORMED: {
    status: 400,
    cause: 'The attribute that names the key to encrypt with is not an OCTET STRING.',
    remedy: 'Correct what builds the CSR.',
  },
  KEY_IDENTIFIER_UNKNOWN: {
    status: 400,
    cause: 'No key that the server holds has the identifier in the CSR.',
    remedy: 'Correct the identifier, or give the server the key (serverkeygen in the configuration).',
  },
  KEY_IDENTIFIER_UNSUITABLE: {
    status: 400,
    cause: 'The key that the CSR names cannot be encrypted to, or may not be used by this requester.',
    remedy: 'Name another key.',
  },
  KEY_NOT_ARCHIVED: {
    status: 500,
    cause: 'The key archive refused the key, or does not show it.',
    remedy: "Look for the archive's words in the log.",
  },
  KEY_PASSWORD_MISSING: {
    status: 400,
    cause:
      'The server encrypts generated keys, but the request has no one-time password, the CSR names no key, and no pre-shared secret is configured.',
    remedy:
      'Authenticate with a one-time password, add DecryptKeyIdentifier or AsymmetricDecryptKeyIdentifier to the CSR, or set `serverkeygen.password_file` or `password_env`.',
  },
  KEY_SENT_ONCE: {
    status: 403,
    cause: 'The key of this request went out already, and the server keeps none.',
    remedy: 'Have the certificate revoked, then ask for another.',
  },
  KEY_TYPE_NOT_GENERATED: {
    status: 400,
    cause: 'The CA certifies no kind of key that the server can generate.',
    remedy: 'Generate the key at the client.',
  },
  KEY_UNDELIVERABLE: {
    status: 500,
    cause: 'A request without a key came by a way that cannot carry one back.',
    remedy: 'Report it: no configuration can bring it about.',
  },
} as const satisfies ErrorTable;
