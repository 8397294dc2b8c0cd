import type { ErrorTable } from './table.ts';

/** Errors of generating, protecting, archiving or delivering a key (RFC 7030 §4.4). */
export const GENERATED_KEY_ERRORS = {
  CAPABILITIES_MALFORMED: {
    status: 400,
    cause: 'The SMIMECapabilities of the CSR cannot be parsed.',
    remedy: 'Correct the software that creates the CSR.',
  },
  CAPABILITIES_WITHOUT_OVERLAP: {
    status: 400,
    cause: 'The client supports no algorithm that the server uses to encrypt keys.',
    remedy: "Add the algorithm to the client's capabilities.",
  },
  CLIENT_GONE: {
    status: 503,
    cause: 'The client disconnected while the server generated its key, so nothing was issued.',
    remedy: 'Send the request again with a longer timeout.',
  },
  KEY_ARCHIVAL_FAILED: {
    status: 500,
    cause: 'The generated key could not be archived, so no certificate was issued.',
    remedy: 'Check the log for the reason, and repair the archive.',
  },
  KEY_ARCHIVE_MISSING: {
    status: 500,
    cause: 'The CA requires key archival, and no archive is configured.',
    remedy: 'Configure the archive of this CA.',
  },
  KEY_ARCHIVE_UNAVAILABLE: {
    status: 503,
    cause: 'Every replica of the key archive is unreachable.',
    remedy: 'Retry after the seconds in Retry-After. Check the archive.',
  },
  KEY_ENCRYPTION_REQUIRED: {
    status: 400,
    cause:
      'The configuration requires encrypted keys (`serverkeygen.encryption = "required"`), and the CSR names no key to encrypt to.',
    remedy: 'Add DecryptKeyIdentifier or AsymmetricDecryptKeyIdentifier to the CSR.',
  },
  KEY_FORM_UNSUPPORTED: {
    status: 400,
    cause: 'The CA cannot sign the CMS structure that carries an encrypted key.',
    remedy: 'Use another CA, or a CSR without a key identifier.',
  },
  KEY_GENERATION_BUSY: {
    status: 503,
    cause: 'The queue of key generation is full, or the request waited for 10 seconds.',
    remedy: 'Retry after the seconds in Retry-After.',
  },
  KEY_IDENTIFIER_AMBIGUOUS: { status: 400, cause: 'The CSR names two encryption keys.', remedy: 'Name one key.' },
  KEY_IDENTIFIER_MALFORMED: {
    status: 400,
    cause: 'The attribute that names the encryption key is not an OCTET STRING.',
    remedy: 'Correct the software that creates the CSR.',
  },
  KEY_IDENTIFIER_UNKNOWN: {
    status: 400,
    cause: 'The server has no encryption key with the identifier in the CSR.',
    remedy: 'Correct the identifier, or add the key to `[serverkeygen]`.',
  },
  KEY_IDENTIFIER_UNSUITABLE: {
    status: 400,
    cause: 'The key that the CSR names cannot encrypt, or this requester may not use it.',
    remedy: 'Name another key.',
  },
  KEY_NOT_ARCHIVED: {
    status: 500,
    cause: 'The key archive rejected the key, or does not list it.',
    remedy: 'Check the log for the message of the archive.',
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
    cause: 'The key of this request was already sent, and the server does not keep it.',
    remedy: 'Revoke the certificate, then request another one.',
  },
  KEY_TYPE_NOT_GENERATED: {
    status: 400,
    cause: 'The CA accepts no type of key that the server can generate.',
    remedy: 'Generate the key in the client.',
  },
  KEY_UNDELIVERABLE: {
    status: 500,
    cause: 'A request without a key arrived by an operation that cannot return one.',
    remedy: 'Report this defect. No configuration can cause it.',
  },
} as const satisfies ErrorTable;
