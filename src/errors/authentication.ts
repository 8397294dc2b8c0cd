import type { ErrorTable } from './table.ts';

/** Errors of authentication and authorization. */
export const AUTHENTICATION_ERRORS = {
  ADMIN_AUTHENTICATION_REQUIRED: {
    status: 401,
    cause: 'The admin call has no accepted credential. The audit log has the reason.',
    remedy: 'Present a bearer token or a client certificate from the `[admin]` table.',
    text: 'admin authentication required<br>admin authentication failed',
  },
  AUTHENTICATION_REQUIRED: {
    status: 401,
    cause:
      'The request carries no credential of a method that counts at this label. The response is only the challenge, without a text; a dry run (`POST /admin/check`) names the method.',
    remedy:
      'Authenticate with a method of the WWW-Authenticate header, or with a client certificate if the label accepts them.',
    text: '(none)',
  },
  CERTIFICATE_REQUIRED: {
    status: 401,
    cause: 'A re-enrollment did not authenticate with the certificate to renew.',
    remedy: 'Present that certificate in the TLS handshake.',
  },
  CLIENT_CERTIFICATE_EXPIRED: {
    status: 401,
    cause: 'The client certificate has expired.',
    remedy: 'Enroll again with another credential.',
  },
  CLIENT_CERTIFICATE_ISSUER_EXPIRED: {
    status: 401,
    cause: 'A CA certificate between the client certificate and the trust anchor has expired or is not yet valid.',
    remedy: 'Renew the CA certificate and update the trust anchors.',
  },
  CLIENT_CERTIFICATE_ISSUER_REVOKED: {
    status: 401,
    cause: 'A CA certificate between the client certificate and the trust anchor is revoked.',
    remedy: 'Enroll again at a trusted CA.',
  },
  CLIENT_CERTIFICATE_KEY_REFUSED: {
    status: 401,
    cause: 'The key of the client certificate, or of a CA above it, is too weak or unsupported.',
    remedy: 'Enroll again with a stronger key.',
  },
  CLIENT_CERTIFICATE_MALFORMED: {
    status: 401,
    cause: 'The client certificate cannot be parsed.',
    remedy: 'Send a DER certificate that conforms to RFC 5280.',
  },
  CLIENT_CERTIFICATE_NOT_ACCEPTED: {
    status: 403,
    cause: 'The client certificate is valid, but this CA does not accept its issuer.',
    remedy: 'Enroll at the label of the certificate, present another credential, or add the issuer to client_issuers.',
  },
  CLIENT_CERTIFICATE_NOT_YET_VALID: {
    status: 401,
    cause: 'The client certificate is not yet valid.',
    remedy: 'Check the clocks of client, CA and server.',
  },
  CLIENT_CERTIFICATE_PURPOSE: {
    status: 401,
    cause: 'The key usages of the certificate do not allow client authentication.',
    remedy: 'Present a certificate with the extended key usage clientAuth.',
  },
  CLIENT_CERTIFICATE_REQUIRED: {
    status: 401,
    cause: 'The configuration requires a client certificate, and the client sent none.',
    remedy: 'Configure a TLS certificate and key in the client.',
  },
  CLIENT_CERTIFICATE_REVOCATION_UNKNOWN: {
    status: 401,
    cause: 'The configuration requires a current CRL, and none covers the certificate.',
    remedy: 'Update the CRL that the configuration names, then reload.',
  },
  CLIENT_CERTIFICATE_REVOKED: {
    status: 401,
    cause: 'The client certificate is revoked.',
    remedy: 'Enroll again with another credential.',
  },
  CLIENT_CERTIFICATE_TOO_LARGE: {
    status: 401,
    cause: 'The client certificate chain is too large.',
    remedy: 'Present a shorter chain.',
  },
  CLIENT_CERTIFICATE_UNSUPPORTED: {
    status: 401,
    cause: 'The certificate has a critical extension that the server does not support.',
    remedy: 'Enroll again for a certificate without that extension.',
  },
  CLIENT_CERTIFICATE_UNTRUSTED: {
    status: 401,
    cause: 'The client certificate does not chain to a trust anchor.',
    remedy: 'Send the intermediate certificates, or add the anchor to the configuration.',
  },
  CLIENT_ID_MISMATCH: {
    status: 403,
    cause:
      'The CSR names another client than the client_id of the one-time password, directory entry, token or shared secret.',
    remedy: 'Request the names of that client, or use a credential of the other client.',
  },
  DEVICE_AMBIGUOUS: {
    status: 403,
    cause: 'The requester matches more than one registered device.',
    remedy: 'Make the `match` of the devices distinct. The log names the devices.',
  },
  DEVICE_NOT_REGISTERED: {
    status: [403, 409],
    cause: 'The CA issues only to registered devices, and the device is unregistered, disabled or expired.',
    remedy: 'Register or enable the device. Its match, id and label must fit the requester (docs/guides/devices.md).',
  },
  FORWARDED_CLIENT: {
    status: 400,
    cause:
      'The headers Client-Cert, Client-Cert-Chain or X-Forwarded-For are malformed, or a client that is not a trusted proxy sent them.',
    remedy: 'Correct the configuration of the proxy; clients must not send these headers.',
    text: 'This connection may not send Client-Cert or Client-Cert-Chain: …<br>The value of Client-Cert is not …',
  },
  GSSAPI_DOWN: {
    status: 503,
    cause: 'The process that verifies Kerberos tickets is restarting.',
    remedy: 'Retry after the seconds in Retry-After. If it lasts, check the log.',
    text: 'Kerberos authentication is temporarily unavailable',
  },
  GSSAPI_BUSY: {
    status: 503,
    cause: 'The queue of Kerberos tickets to verify is full.',
    remedy: 'Retry after the seconds in Retry-After.',
    text: 'too many Kerberos requests; try again later',
  },
  GSSAPI_FAILED: {
    status: [401, 500],
    cause: 'The Kerberos ticket was rejected (401), or the process that verifies tickets stopped (500).',
    remedy: 'Get a new ticket for the service principal. Check keytab, clocks and realm.',
    text: 'GSSAPI authentication failed<br>Kerberos authentication failed',
  },
  GSSAPI_MISCONFIGURED: {
    status: 500,
    cause: 'The [gssapi] section has no credentials, or maps principals to invalid names.',
    remedy: 'Correct the key that the message names.',
  },
  GSSAPI_PRINCIPAL_NOT_MAPPED: {
    status: 401,
    cause: 'No rule of the `[gssapi]` table maps the principal to a subject.',
    remedy: 'Add the principal to gssapi.mapping, or set gssapi.default_template.',
  },
  GSSAPI_TIMEOUT: {
    status: 500,
    cause: 'The Kerberos library did not respond in time. Its process restarts.',
    remedy: 'Try again. Check the connection to the KDC and the replay cache.',
    text: 'Kerberos authentication failed',
  },
  GSSAPI_UNAVAILABLE: {
    status: 503,
    cause: 'The server has no usable Kerberos credentials.',
    remedy: 'Restore the keytab or gssproxy; the log has the reason.',
  },
  JWKS_UNAVAILABLE: {
    status: 503,
    cause: "The server cannot get the token issuer's keys at present.",
    remedy:
      'Try again after the seconds of Retry-After; the log has the reason (auth.jwt.jwks_url, auth.jwt.jwks_file).',
  },
  JWT_INVALID: {
    status: 401,
    cause: 'The bearer token is malformed, expired, already used, for another audience, or not signed by the issuer.',
    remedy: 'Get a new token; the audit log has the reason.',
  },
  LDAP_INVALID: {
    status: 401,
    cause: 'The directory has no such entry, or it refuses the password or the group.',
    remedy: 'Correct the username or the password; the audit log has the reason.',
  },
  LDAP_UNAVAILABLE: {
    status: 503,
    cause: 'No server of the directory answers.',
    remedy: 'Try again after the seconds of Retry-After; the log has the reason for each server.',
  },
  LOCKED_OUT: {
    status: 401,
    cause: 'Too many attempts failed from this address or for this token.',
    remedy: 'Wait until the lockout expires, or remove it with DELETE /admin/lockouts.',
  },
  NAME_NOT_MADE: {
    status: 403,
    cause:
      'A template of the profile has a placeholder without exactly one valid value for this requester. The log says which.',
    remedy: 'Correct the template, or the name of the requester.',
  },
  NAME_NOT_OWN: {
    status: 403,
    cause: 'The requester may only have its own names, and the request contains another name.',
    remedy: 'Request only these names, or allow others by a pattern with a placeholder.',
    text: "The request asks for a name that is not the requester's: …",
  },
  NAMES_NOT_OWN: {
    status: 403,
    cause: 'The signer of the CMC message may not enroll.',
    remedy: 'Sign with a certificate or secret that may enroll.',
  },
  NOT_ISSUED_HERE: {
    status: 403,
    cause: 'Another CA issued the certificate to renew, or the same CA issued it at another label.',
    remedy: 'Re-enroll at the CA and label that issued it, or enroll again here.',
  },
  OTP_HMAC_KEY_MISSING: {
    status: 500,
    cause: 'The hash algorithm of one-time passwords needs a key, and the configuration has none.',
    remedy: 'Set otp.hmac_key, or another otp.hash_algorithm.',
  },
  OTP_INVALID: {
    status: 401,
    cause: 'The one-time password is unknown, used up, expired, revoked, or for another CA.',
    remedy: 'Create a new one.',
  },
  PASSWORD_CHECK_BUSY: {
    status: 503,
    cause: 'The queue of passwords to verify is full.',
    remedy: 'Retry after the seconds in Retry-After.',
  },
  POP_LINKING_MISMATCH: {
    status: 400,
    cause: 'The CSR is not bound to this TLS connection (RFC 7030 section 3.5).',
    remedy:
      'Put tls-unique or tls-exporter of this connection into estIdentityLinking or challengePassword. Check for a proxy that terminates TLS.',
  },
  POP_LINKING_MISSING: {
    status: 400,
    cause:
      'The configuration requires channel binding, and the CSR has neither estIdentityLinking nor challengePassword.',
    remedy: 'Enable channel binding in the client.',
  },
  SAN_MISMATCH: {
    status: 403,
    cause: 'A renewal requests other alternative names than the certificate has.',
    remedy: 'Request the same names, or enroll again.',
  },
  SESSION_ENDED: {
    status: 401,
    cause: 'The session has ended, or its administrator lost access. The audit log says which.',
    remedy: 'Sign in again.',
  },
  SUBJECT_CHANGE_NOT_ALLOWED: {
    status: 403,
    cause: 'The CSR requests a change of subject (RFC 6402 section 2.8) that is not allowed.',
    remedy: 'Allow the change at the CA, or request the same names.',
    text: 'The CA allows no change of the subject, or this requester may not make it.',
  },
  SUBJECT_MISMATCH: {
    status: 403,
    cause: 'A renewal requests another subject than the certificate has.',
    remedy: 'Request the same subject, or enroll again.',
  },
  SUBJECT_NOT_OWN: {
    status: 403,
    cause: 'A client with a certificate requests the name of another client.',
    remedy: 'Request the subject of that certificate.',
  },
} as const satisfies ErrorTable;
