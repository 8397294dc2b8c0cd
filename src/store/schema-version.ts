/** The schema versions that this program supports, for both drivers. */
import { failed, type EstuaryError } from '../errors.ts';

/** The first schema version of Estuary 0.2. A database of 0.1 has a lower one. */
export const FIRST_VERSION = 100;

/** @param detail for the log: the database and its version */
export const tooOld = (detail: string): EstuaryError =>
  failed(
    'STORE_TOO_OLD',
    'The database was made by Estuary 0.1, and this version does not read it. Start with a new store, and import the certificates with "estuary admin cert import"; the last version that reads this database is 0.1.x.',
    { detail },
  );

/** @param detail for the log: the database, its version, and this program's */
export const tooNew = (detail: string): EstuaryError =>
  failed('STORE_TOO_NEW', 'the database was made by a newer version of Estuary', { detail });
