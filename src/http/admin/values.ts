/** Times and other values in the form of the admin API. */
import { badRequest } from '../../errors.ts';
import { InputError } from '../../pki/input-error.ts';
import { readTimestamp } from '../../timestamp.ts';

export const TIMESTAMP_RULE = 'must be an ISO 8601 timestamp with Z or an offset, like 2030-01-31T12:00:00Z';

/**
 * Parses an ISO 8601 timestamp with `Z` or a numeric offset.
 * @param field the name for the error message
 * @throws {EstuaryError} 400 `FIELD_INVALID` for malformed text, without an offset, or for a day that does not exist
 */
export function parseTimestamp(field: string, text: string): number {
  const ms = readTimestamp(text);
  if (ms === undefined) throw badRequest('FIELD_INVALID', `${field} ${TIMESTAMP_RULE}`);
  return ms;
}

export const parseOptionalTimestamp = (field: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseTimestamp(field, text);

/** @throws EstuaryError 400 that names the field and its form */
export function readable<T>(field: string, form: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw badRequest('FIELD_INVALID', `${field} must be ${form}: ${error.message}`);
  }
}

/** SHA-256 in hex, with or without colons, as lower case. @throws EstuaryError 400 `FIELD_INVALID` */
export function readHash(field: string, text: string): string {
  const hex = text.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw badRequest('FIELD_INVALID', `${field} must be 64 hex digits`);
  return hex;
}
