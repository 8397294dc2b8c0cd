import type { ErrorTable } from './table.ts';

/** Errors of the admin API and of queued requests. */
export const ADMIN_ERRORS = {
  ALREADY_REVOKED: { status: 409, cause: 'The certificate is already revoked.', remedy: 'No action is needed.' },
  APPROVED_ALREADY: {
    status: 409,
    cause: 'The CA requires several approvals, and this administrator has already approved the request.',
    remedy: 'Ask another administrator to approve it.',
  },
  APPROVER_NOT_LISTED: {
    status: 403,
    cause: 'The request needs several approvals, and the certificate of the caller has only `admin.tls.default_roles`.',
    remedy: 'Add an entry with a `name` for the certificate to `admin.clients`.',
  },
  BODY_NOT_UTF8: {
    status: 400,
    cause: 'The rows of a bulk call are not valid UTF-8.',
    remedy: 'Save the file as UTF-8.',
  },
  CERTIFICATE_FOREIGN: {
    status: 400,
    cause: 'The CA that the call names did not sign the certificate to import.',
    remedy: 'Name the CA that signed it.',
  },
  CERTIFICATE_KNOWN: {
    status: 409,
    cause: 'The store already contains this certificate, or one with the same CA and serial number.',
    remedy: 'No action is needed. Find it by its serial number.',
  },
  CERTIFICATE_MISSING: {
    status: 500,
    cause: 'A request is marked as issued, but the store does not contain its certificate.',
    remedy: 'Restore a backup that contains it. The log names the request.',
  },
  CERTIFICATE_NOT_FOUND: {
    status: 404,
    cause: 'The store contains no certificate with this serial number.',
    remedy: 'Check the serial number and the CA.',
  },
  COLUMN_UNKNOWN: {
    status: 400,
    cause: 'The CSV header contains an unknown column, or the same column twice.',
    remedy: 'Correct the header. The response lists the columns.',
  },
  COUNT_MISMATCH: {
    status: 409,
    cause: 'The filters of a bulk revocation match another number of certificates than `count` says.',
    remedy: 'Repeat the call with dry_run, check the matches, and send their count.',
  },
  CRL_SIGNED_ELSEWHERE: {
    status: 409,
    cause: 'The CA is on another host and signs its CRLs there.',
    remedy: 'Have the CA sign a CRL with its own tools.',
  },
  CURSOR_INVALID: {
    status: 400,
    cause: 'The cursor does not belong to this list.',
    remedy: 'Start again at the first page.',
  },
  DECIDED_AT_CA: {
    status: 409,
    cause: 'The request is pending at the remote CA, so Estuary cannot decide it.',
    remedy: 'Ask an agent of that CA to decide it.',
  },
  DEVICE_EXISTS: {
    status: 409,
    cause: 'A device with this id exists.',
    remedy: 'Change it with PATCH, or send it with ?mode=upsert.',
  },
  DEVICE_NOT_FOUND: { status: 404, cause: 'No device has this id.', remedy: 'List the devices and check the id.' },
  FIELD_INVALID: {
    status: 400,
    cause: 'A field or parameter of the call is invalid.',
    remedy: 'Correct the field that the response names.',
  },
  HEADER_MISSING: {
    status: 400,
    cause: 'The first line of the CSV does not contain column names.',
    remedy: 'Add the header line.',
  },
  HOLD_UNSUPPORTED: {
    status: 409,
    cause: 'The CA is on another host, which is informed of revocations and cannot end a hold.',
    remedy: 'Revoke the certificate with a final reason.',
  },
  LABEL_NOT_PERMITTED: {
    status: 403,
    cause:
      'The roles of the administrator are limited to labels, and the call is about another label or about no label.',
    remedy: 'Name one of the labels that the response lists, or use an administrator without this limit.',
  },
  LOCKOUT_NOT_FOUND: {
    status: 404,
    cause: 'No lockout has this key.',
    remedy: 'List the lockouts. It may have expired.',
  },
  NOTIFICATION_FAILED: {
    status: 503,
    cause: 'The receiver of the notification did not accept the sample. The message has the reason.',
    remedy: 'Check the entry in [[notifications]], and the receiver.',
  },
  NOTIFICATION_NOT_FOUND: {
    status: 404,
    cause: 'No entry in [[notifications]] has this name.',
    remedy: 'Correct the name.',
  },
  NOT_HELD: {
    status: 409,
    cause: 'The certificate is valid, or revoked with a final reason.',
    remedy: 'No action is needed. A certificate with a final reason must be replaced.',
  },
  NOT_READY: {
    status: 503,
    cause: 'A component that enrollment needs is unavailable.',
    remedy: 'Check the components that the response names.',
  },
  OIDC_FAILED: {
    status: 401,
    cause:
      'The sign-in at the OpenID provider was not begun in this browser, took longer than ten minutes, was canceled, or its answer is invalid. The audit log has the reason.',
    remedy: 'Sign in again.',
  },
  OIDC_NO_ROLE: {
    status: 403,
    cause: 'No value of `admin.oidc.roles_claim` is in `admin.oidc.roles`.',
    remedy: 'Add the person to a group that has a role, or the group to `admin.oidc.roles`.',
  },
  OIDC_UNAVAILABLE: {
    status: 503,
    cause: 'The OpenID provider does not answer, or does not accept this server. The log has the reason.',
    remedy: 'Sign in with a token or a client certificate, or retry after the seconds in Retry-After.',
  },
  OTP_DISABLED: {
    status: 409,
    cause: 'One-time passwords are disabled.',
    remedy: 'Set otp.enabled and restart the server.',
  },
  OTP_NOT_FOUND: {
    status: 404,
    cause: 'No one-time password has this id.',
    remedy: 'List the one-time passwords and check the id.',
  },
  OTP_REVOKED: {
    status: 409,
    cause: 'The one-time password is already revoked.',
    remedy: 'Create a new one.',
  },
  RELOAD_FAILED: {
    status: 409,
    cause: 'The new configuration, or a file that it names, is unusable. The previous one stays in force.',
    remedy: 'Correct what the message names, then try again, first with ?dry_run=true.',
    text: 'what is wrong with the configuration',
  },
  RENEWAL_NOT_FOUND: {
    status: 404,
    cause: 'The campaign ID does not exist, or the campaign was ended.',
    remedy: 'List the campaigns.',
  },
  REQUEST_BUSY: {
    status: 503,
    cause: 'Other administrators changed the request repeatedly while it was being decided.',
    remedy: 'Get the request. If it is still pending, decide again.',
  },
  REQUEST_CANCELED: {
    status: 403,
    cause: 'The request that the client polls for was canceled.',
    remedy: 'Send a new request.',
    text: "(the CA's reason)<br>The request was canceled.",
  },
  REQUEST_DECIDED: {
    status: 409,
    cause: 'The request is already decided.',
    remedy: 'Get the request to see the decision.',
  },
  REQUEST_LOST: {
    status: 503,
    cause: 'The remote CA no longer knows the request.',
    remedy: 'Send the request again.',
  },
  REQUEST_NOT_FOUND: {
    status: 404,
    cause: 'No request has this id.',
    remedy: 'List the requests and check the id. The server deletes old requests.',
  },
  REQUEST_REJECTED: {
    status: 403,
    cause: 'An administrator, or an agent of the remote CA, rejected the request.',
    remedy: 'Find out the reason, then send a corrected request.',
    text: '(the reason given)<br>The request was rejected.',
  },
  REQUEST_UNDER_WAY: {
    status: 503,
    cause: 'The same request with the same one-time password is still being processed.',
    remedy: 'Retry after the seconds in Retry-After. If it lasts, check the CA.',
  },
  ROLE_MISSING: {
    status: 403,
    cause: 'The roles of the administrator do not allow the call.',
    remedy: 'Use an administrator with a role that the response names, or grant the role in the configuration.',
  },
  ROW_INVALID: {
    status: 400,
    cause: 'A row of a bulk call is not valid JSON or CSV.',
    remedy: 'Correct the row. The other rows were processed.',
  },
  SERIAL_AMBIGUOUS: {
    status: 400,
    cause: 'Certificates of several CAs have this serial number.',
    remedy: 'Specify the CA with the parameter ca.',
  },
  SESSION_NOT_FOUND: {
    status: 404,
    cause: 'A sign-out call has no session, or its session has just ended.',
    remedy: 'No action is needed.',
  },
  SUBMISSION_LOST: {
    status: 503,
    cause: 'It is unknown whether the remote CA received the request.',
    remedy: 'Send the request again.',
  },
  VERDICT_UNKNOWN: {
    status: 409,
    cause: 'The decision about a queued request depends on credentials that the requester presents when it polls.',
    remedy: 'Decide from the fields of the request. `POST /admin/check` evaluates a certificate that you have.',
    text: '(why)',
  },
} as const satisfies ErrorTable;
