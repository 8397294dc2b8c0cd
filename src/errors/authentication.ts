import type { ErrorTable } from './table.ts';

/** Who sent the request cannot be told, or may not have what it asks for. */
export const AUTHENTICATION_ERRORS = {
  ADMIN_AUTHENTICATION_REQUIRED: {
    status: 401,
    cause: 'The admin call carries no credential that is accepted; the audit log says why.',
    remedy: "Present a bearer token or a client certificate of the configuration's admin table.",
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
    cause: 'Re-enrolment was authenticated by something else than the certificate to renew.',
    remedy: 'Present that certificate in the TLS handshake.',
  },
  CLIENT_CERTIFICATE_EXPIRED: {
    status: 401,
    cause: "The client's certificate has passed its notAfter.",
    remedy: 'Enrol anew with another credential.',
  },
  CLIENT_CERTIFICATE_ISSUER_EXPIRED: {
    status: 401,
    cause: "A CA certificate between the client's and the trust anchor is outside of its validity.",
    remedy: 'Have the CA certificate renewed, and the trust anchors updated.',
  },
  CLIENT_CERTIFICATE_ISSUER_REVOKED: {
    status: 401,
    cause: "A CA certificate between the client's and the trust anchor is revoked.",
    remedy: 'Enrol anew at a CA that is trusted.',
  },
  CLIENT_CERTIFICATE_KEY_REFUSED: {
    status: 401,
    cause: "The key of the client's certificate, or of one above it, is too weak or of a kind that is not supported.",
    remedy: 'Enrol anew with a stronger key.',
  },
  CLIENT_CERTIFICATE_MALFORMED: {
    status: 401,
    cause: "The client's certificate cannot be read.",
    remedy: 'Have the client send a certificate in DER as RFC 5280 has it.',
  },
  CLIENT_CERTIFICATE_NOT_ACCEPTED: {
    status: 403,
    cause: "The client's certificate is good, and its issuer is none of those whose certificates count at this CA.",
    remedy: 'Enrol where the certificate belongs, present another credential, or add its issuer to client_issuers.',
  },
  CLIENT_CERTIFICATE_NOT_YET_VALID: {
    status: 401,
    cause: "The notBefore of the client's certificate lies in the future.",
    remedy: 'Compare the clocks of client, CA and server.',
  },
  CLIENT_CERTIFICATE_PURPOSE: {
    status: 401,
    cause: "The certificate's key usages leave client authentication out.",
    remedy: 'Present a certificate with the extended key usage clientAuth.',
  },
  CLIENT_CERTIFICATE_REQUIRED: {
    status: 401,
    cause: 'The configuration asks for a client certificate and the handshake had none.',
    remedy: "Configure the client's certificate and key for TLS.",
  },
  CLIENT_CERTIFICATE_REVOCATION_UNKNOWN: {
    status: 401,
    cause: 'No current CRL says whether the certificate is revoked, and the configuration wants one.',
    remedy: 'Renew the CRL that the configuration names, and reload.',
  },
  CLIENT_CERTIFICATE_REVOKED: {
    status: 401,
    cause: "The client's certificate is revoked.",
    remedy: 'Enrol anew with another credential.',
  },
  CLIENT_CERTIFICATE_TOO_LARGE: {
    status: 401,
    cause: "The client's certificates are larger than any that are checked.",
    remedy: 'Present a shorter chain.',
  },
  CLIENT_CERTIFICATE_UNSUPPORTED: {
    status: 401,
    cause: 'The certificate has a critical extension that the server cannot process.',
    remedy: 'Enrol anew with a certificate without that extension.',
  },
  CLIENT_CERTIFICATE_UNTRUSTED: {
    status: 401,
    cause: "No path leads from the client's certificate to a trust anchor.",
    remedy: 'Send the intermediate certificates, or add the anchor to the configuration.',
  },
  CLIENT_ID_MISMATCH: {
    status: 403,
    cause: 'The one-time password was made for another client than the one the CSR names.',
    remedy: 'Ask for the names of that client, or have a password made for this one.',
  },
  DEVICE_AMBIGUOUS: {
    status: 403,
    cause: 'The requester fits more than one registered device, so that nobody can say which it is.',
    remedy: 'Give one of the devices a match that the other does not fit; the log names them.',
    text: 'more than one registered device matches',
  },
  DEVICE_NOT_REGISTERED: {
    status: [403, 409],
    cause: 'The CA issues to registered devices only, and the requester is none that is enabled and has not expired.',
    remedy: 'Register or enable the device; its match, id and label have to fit the requester (docs/devices.md).',
  },
  GSSAPI_DOWN: {
    status: 503,
    cause: 'The process that accepts Kerberos tickets is being started anew.',
    remedy: 'Try again after the seconds of Retry-After; where it lasts, look into the log.',
    text: 'Kerberos authentication is temporarily unavailable',
  },
  GSSAPI_BUSY: {
    status: 503,
    cause: 'More Kerberos tickets wait to be accepted than the bound allows.',
    remedy: 'Try again after the seconds of Retry-After.',
    text: 'Kerberos authentication has too many requests in hand',
  },
  GSSAPI_FAILED: {
    status: [401, 500],
    cause: 'The Kerberos ticket was not accepted (401), or the process that accepts them ended meanwhile (500).',
    remedy: 'Get a new ticket for the service principal; compare keytab, clocks and realm.',
    text: 'GSSAPI authentication failed<br>Kerberos authentication failed',
  },
  GSSAPI_MISCONFIGURED: {
    status: 500,
    cause: 'The [gssapi] section names no credentials, or maps principals to names that are none.',
    remedy: 'Correct the key that the message names.',
  },
  GSSAPI_PRINCIPAL_NOT_MAPPED: {
    status: 401,
    cause: 'No rule of the gssapi table gives the principal a subject.',
    remedy: 'Add the principal to gssapi.mapping, or set gssapi.default_template.',
  },
  GSSAPI_TIMEOUT: {
    status: 500,
    cause: 'The Kerberos library did not answer in time; its process is started anew.',
    remedy: 'Try again; look at the reach of the KDC and the replay cache.',
    text: 'Kerberos authentication failed',
  },
  GSSAPI_UNAVAILABLE: {
    status: 503,
    cause: 'The server has no usable Kerberos credentials at present.',
    remedy: 'Restore the keytab or gssproxy; the log has the reason.',
  },
  LOCKED_OUT: {
    status: 401,
    cause: 'Too many attempts failed from this address or for this token.',
    remedy: 'Wait until the lockout ends, or end it with DELETE /admin/lockouts.',
  },
  NAME_NOT_MADE: {
    status: 403,
    cause:
      'A template of the profile has a placeholder for which the requester has no value, several, or one that is not valid there; the log says which.',
    remedy: 'Correct the template, or the name of whoever asks.',
  },
  NAME_NOT_OWN: {
    status: 403,
    cause: 'The requester is bound to its own names, and the request has another one.',
    remedy: 'Ask for the own names only, or allow others by a pattern with a placeholder.',
    text: "The request asks for a name that is not the requester's: …",
  },
  NAMES_NOT_OWN: {
    status: 403,
    cause: 'What signed the CMC message gives no right to a certificate.',
    remedy: 'Sign with a certificate or secret that may enrol.',
  },
  NOT_ISSUED_HERE: {
    status: 403,
    cause: 'The certificate to renew comes from another CA, or was issued at another label of the same one.',
    remedy: 'Re-enrol at the CA and label that issued it, or enrol anew here.',
  },
  OTP_HMAC_KEY_MISSING: {
    status: 500,
    cause: 'One-time passwords are to be hashed with a key that the configuration does not give.',
    remedy: 'Set otp.hmac_key, or another otp.hash_algorithm.',
  },
  OTP_INVALID: {
    status: 401,
    cause: 'The one-time password is unknown, used up, expired, revoked, or for another CA.',
    remedy: 'Have a new one made.',
  },
  PASSWORD_CHECK_BUSY: {
    status: 503,
    cause: 'More passwords wait to be checked than the bound allows.',
    remedy: 'Try again after the seconds of Retry-After.',
  },
  POP_LINKING_MISMATCH: {
    status: 400,
    cause: 'The CSR was not made for this TLS connection (RFC 7030 §3.5).',
    remedy:
      'Put tls-unique or tls-exporter of this connection into estIdentityLinking or challengePassword; look for a proxy that ends TLS.',
  },
  POP_LINKING_MISSING: {
    status: 400,
    cause:
      'The CSR has neither estIdentityLinking nor challengePassword, and the configuration asks for channel binding.',
    remedy: 'Switch channel binding on in the client.',
  },
  SAN_MISMATCH: {
    status: 403,
    cause: 'A renewal asks for other alternative names than the certificate has.',
    remedy: 'Ask for the same ones, or enrol anew.',
  },
  SESSION_ENDED: {
    status: 401,
    cause:
      'The cookie is of a session that has ended, or whose administrator may not come in any more; the audit log says which of these.',
    remedy: 'Sign in again.',
  },
  SUBJECT_CHANGE_NOT_ALLOWED: {
    status: 403,
    cause: 'The CSR asks for a change of subject (RFC 6402 §2.8) that is not allowed.',
    remedy: 'Allow it at the CA, or ask for the same names.',
    text: 'The CA allows no change of the subject, or this requester may not make it.',
  },
  SUBJECT_MISMATCH: {
    status: 403,
    cause: 'A renewal asks for another subject than the certificate has.',
    remedy: 'Ask for the same one, or enrol anew.',
  },
  SUBJECT_NOT_OWN: {
    status: 403,
    cause: 'A client that authenticates by certificate asks for the name of another.',
    remedy: 'Ask for the subject of that certificate.',
  },
} as const satisfies ErrorTable;
