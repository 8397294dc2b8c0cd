import pg from 'pg';
import { EstuaryError } from '../../errors.ts';
import { storeFailed, storeUnavailable, toStoreError } from '../calls/errors.ts';

/**
 * SQLSTATEs that may pass without a change to the program or its data: connections, resources (full disks and tables of connections among
 * them), the operator's hand, a server that has become a standby, time-outs, locks, deadlocks, passwords that are being changed.
 */
const PASSING = /^(08|28|40|53|57|58|3D000|25006|25P03|55P03|55006)/;
/** Another transaction was in the way: the same call may come through when it is made again. */
const IN_THE_WAY = /^(40001|40P01)$/;

/** Whether the server has refused a statement and goes on serving the connection. */
export function isStatementError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR';
}

/** The disk, or the disk of a tablespace, is full. */
export const isDiskFull = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '53100';

export const isInTheWay = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && IN_THE_WAY.test(error.code ?? '');

/** Or somebody's lock was not to be had in time. */
export const isHeldUp = (error: unknown): boolean =>
  isInTheWay(error) || (error instanceof pg.DatabaseError && error.code === '55P03');

/** What went wrong, as the one error family. The reason goes into the private detail. */
export function toEstuaryError(error: unknown): EstuaryError {
  if (!(error instanceof pg.DatabaseError)) return toStoreError(error);
  const { code = '', message, table, constraint } = error;
  const detail = [`${code}: ${message}`, table, constraint].filter((part) => part !== undefined).join(', ');
  return PASSING.test(code) ? storeUnavailable(detail, error) : storeFailed(detail, error);
}

/** The same of what a connection failed with. */
export function toConnectionError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError || error instanceof pg.DatabaseError) return toEstuaryError(error);
  return storeUnavailable(error instanceof Error ? error.message || error.name : String(error), error);
}
