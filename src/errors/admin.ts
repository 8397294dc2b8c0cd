import type { ErrorTable } from './table.ts';

/** What the admin API refuses, and what becomes of requests that wait. */
export const ADMIN_ERRORS = {
  ALREADY_REVOKED: { status: 409, cause: 'The certificate was revoked before.', remedy: 'Nothing is left to do.' },
  APPROVED_ALREADY: {
    status: 409,
    cause: 'The CA asks for several administrators, and this one has approved the request before.',
    remedy: 'Have another administrator approve it.',
  },
  APPROVER_NOT_LISTED: {
    status: 403,
    cause: 'The request needs several approvals, and the certificate of the caller has only `admin.tls.default_roles`.',
    remedy: 'Add an entry with a `name` for the certificate to `admin.clients`.',
  },
  BODY_NOT_UTF8: { status: 400, cause: 'The rows of a bulk call are not UTF-8.', remedy: 'Save the file as UTF-8.' },
  CERTIFICATE_FOREIGN: {
    status: 400,
    cause: 'A certificate that is to be taken in was not signed by the CA that the call names.',
    remedy: 'Name the CA that signed it; what another one signed, only that one can revoke.',
  },
  CERTIFICATE_KNOWN: {
    status: 409,
    cause: 'The store has this certificate, or one of the same CA and serial number.',
    remedy: 'Nothing is left to do: look at it by its serial number.',
  },
  CERTIFICATE_MISSING: {
    status: 500,
    cause: 'A request is marked as issued and its certificate is not in the store.',
    remedy: 'Restore the store from a backup that holds it; the log has the request.',
  },
  CERTIFICATE_NOT_FOUND: {
    status: 404,
    cause: 'No certificate in the store has this serial number.',
    remedy: 'Compare the serial number, and the CA where one is given.',
  },
  COLUMN_UNKNOWN: {
    status: 400,
    cause: 'The header line of the CSV names a column that there is not, or one twice.',
    remedy: 'Correct the header line; the answer names the columns that there are.',
  },
  COUNT_MISMATCH: {
    status: 409,
    cause: 'The filters of a bulk revocation find more or fewer certificates than the caller has counted.',
    remedy: 'Call again with dry_run, look at what the filters find, and send its count.',
  },
  CURSOR_INVALID: {
    status: 400,
    cause: 'The cursor does not come from a page of this list.',
    remedy: 'Start again from the first page.',
  },
  DECIDED_AT_CA: {
    status: 409,
    cause: 'The request waits at the CA behind, so it cannot be decided here.',
    remedy: 'Have an agent decide it there.',
  },
  DEVICE_EXISTS: {
    status: 409,
    cause: 'There is a device with this id.',
    remedy: 'Change it with PATCH, or send it with ?mode=upsert to change the given fields.',
  },
  DEVICE_NOT_FOUND: { status: 404, cause: 'No device has this id.', remedy: 'List them and compare.' },
  FIELD_INVALID: {
    status: 400,
    cause: 'A field or parameter of the call breaks its rule.',
    remedy: 'Correct what the answer names.',
  },
  HEADER_MISSING: {
    status: 400,
    cause: 'The CSV does not begin with a line of column names.',
    remedy: 'Add the header line.',
  },
  LOCKOUT_NOT_FOUND: {
    status: 404,
    cause: 'Nobody is locked out under this key.',
    remedy: 'List the lockouts; it may have ended.',
  },
  NOT_READY: {
    status: 503,
    cause: 'A part that enrolment needs is down.',
    remedy: 'Look at the parts that the answer names.',
  },
  OTP_DISABLED: { status: 409, cause: 'One-time passwords are switched off.', remedy: 'Set otp.enabled, and restart.' },
  OTP_NOT_FOUND: { status: 404, cause: 'No one-time password has this id.', remedy: 'List them and compare.' },
  OTP_REVOKED: {
    status: 409,
    cause: 'The one-time password was revoked before.',
    remedy: 'Make a new one.',
  },
  RELOAD_FAILED: {
    status: 409,
    cause: 'The configuration, or a file that it names, cannot be brought into force; what was in force goes on.',
    remedy: 'Correct what the message names, and try again, with ?dry_run=true first.',
    text: 'what is wrong with the configuration',
  },
  REQUEST_BUSY: {
    status: 503,
    cause: 'Other administrators decided about the request again and again between the look at it and the decision.',
    remedy: 'Get the request, and decide again where it is still pending.',
  },
  REQUEST_CANCELED: {
    status: 403,
    cause: 'The request that the client polls for was canceled.',
    remedy: 'Send a new request.',
    text: "(the CA's reason)<br>The request was canceled.",
  },
  REQUEST_DECIDED: {
    status: 409,
    cause: 'The request has been decided before.',
    remedy: 'Get the request to see how.',
  },
  REQUEST_LOST: {
    status: 503,
    cause: 'The CA behind does not know the request any more.',
    remedy: 'Send the request again.',
  },
  REQUEST_NOT_FOUND: {
    status: 404,
    cause: 'No request has this id.',
    remedy: 'List them and compare; old ones are purged.',
  },
  REQUEST_REJECTED: {
    status: 403,
    cause: "An administrator, or the CA's agent, rejected the request.",
    remedy: 'Ask for the reason, then send a request that meets it.',
    text: '(the reason given)<br>The request was rejected.',
  },
  REQUEST_UNDER_WAY: {
    status: 503,
    cause: 'The same request came before with the same one-time password, and how it ends is not known yet.',
    remedy: 'Send it again after the seconds of Retry-After; where it lasts, look at the CA.',
  },
  ROLE_MISSING: {
    status: 403,
    cause: 'The call is beyond the roles of the administrator who makes it.',
    remedy:
      'Have somebody with one of the roles that the answer names make it, or give the caller one in the configuration.',
  },
  ROW_INVALID: {
    status: 400,
    cause: 'A row of a bulk call is no JSON, or no record of the CSV.',
    remedy: 'Correct the row; the others were processed.',
  },
  SERIAL_AMBIGUOUS: {
    status: 400,
    cause: 'Certificates of several CAs have this serial number.',
    remedy: 'Name the CA with the parameter ca.',
  },
  SESSION_NOT_FOUND: {
    status: 404,
    cause: 'A call that is to sign out comes without a session, or with one that has just ended.',
    remedy: 'Nothing: nobody is signed in.',
  },
  SUBMISSION_LOST: {
    status: 503,
    cause: 'It cannot be told whether the CA behind took the request.',
    remedy: 'Send the request again.',
  },
  VERDICT_UNKNOWN: {
    status: 409,
    cause: 'What a queued request comes to hangs on what its requester shows when it asks again.',
    remedy: 'Decide by what the request says; `POST /admin/check` answers for a certificate that you have.',
    text: '(why)',
  },
} as const satisfies ErrorTable;
