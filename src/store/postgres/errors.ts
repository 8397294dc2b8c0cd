import pg from 'pg';
import { codeOf, EstuaryError } from '../../errors.ts';
import { storeFailed, storeUnavailable, toStoreError } from '../calls/errors.ts';

/**
 * Temporary SQLSTATEs: connections, resources (including full disks and connection limits), operator intervention, a
 * server that became a standby, timeouts, locks, deadlocks, passwords that are being changed.
 */
const PASSING = /^(08|28|40|53|57|58|3D000|25006|25P03|55P03|55006)/;
/** Conflicts with another transaction; a retry may succeed. */
const IN_THE_WAY = /^(40001|40P01)$/;

/** Passwords, users, and databases that do not exist. */
const REFUSED = /^(28|3D)/;

/** The server ends the connection: its severity would say so, too, but in the language of `lc_messages`. */
const ENDS = /^(08|28|57P|53300|25P0[34])/;
/** In addition, whether a COMMIT had an effect is unknown: system and internal errors, resources. */
const UNKNOWN = /^(XX|58|53|F0)/;

/** Whether the server rejected a statement but keeps the connection. */
export function isStatementError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && !ENDS.test(error.code ?? '');
}

/** Whether the error of a COMMIT says that it had no effect. */
export const isRolledBack = (error: unknown): boolean => isStatementError(error) && !UNKNOWN.test(error.code ?? '');

export const isDiskFull = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '53100';

export const isInTheWay = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && IN_THE_WAY.test(error.code ?? '');

/** Including lock timeouts. */
export const isHeldUp = (error: unknown): boolean =>
  isInTheWay(error) || (error instanceof pg.DatabaseError && error.code === '55P03');

/** Converts an error to an EstuaryError. The reason goes into the private detail. */
export function toEstuaryError(error: unknown): EstuaryError {
  if (!(error instanceof pg.DatabaseError)) return toStoreError(error);
  const { code = '', message, table, constraint } = error;
  const detail = [`${code}: ${message}`, table, constraint].filter((part) => part !== undefined).join(', ');
  return PASSING.test(code) ? storeUnavailable(detail, error) : storeFailed(detail, error);
}

/** Of the library, for a URL without a password, if neither PGPASSWORD nor a password file has one. */
const NO_PASSWORD = /^SASL: .*client password must be/;

/** Codes of certificates that are not trusted, or are for another host. One that has expired will be replaced. */
const UNTRUSTED =
  /^(?:ERR_TLS_CERT|CERT_(?!HAS_EXPIRED|NOT_YET_VALID)|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_(?:GET_ISSUER|VERIFY)|INVALID_)/;

/** The database answers, but refuses this user or database, or is not the one that is configured. */
export const isRefusedLogin = ({ cause }: EstuaryError): boolean =>
  cause instanceof pg.DatabaseError
    ? REFUSED.test(cause.code ?? '')
    : UNTRUSTED.test(codeOf(cause)) || (cause instanceof Error && NO_PASSWORD.test(cause.message));

export function toConnectionError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError || error instanceof pg.DatabaseError) return toEstuaryError(error);
  return storeUnavailable(messageOf(error), error);
}

export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (NO_PASSWORD.test(error.message))
    return 'the database asks for a password: store.url, PGPASSWORD and the password file (PGPASSFILE) have none';
  return error.message || error.name;
}
