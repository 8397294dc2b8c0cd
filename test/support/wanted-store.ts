/** Where the servers of black-box tests are to have their stores. */

/** Set to `postgres` to have them there, see store-in-postgres.ts. */
export const STORE = 'ESTUARY_TEST_STORE';

export const isStoreInPostgres = (): boolean => process.env[STORE] === 'postgres';

/** Why a test is left out that is about a store in a file. Nothing is missing on the machine: with `CI=true` it is no failure either. */
export const ABOUT_FILES = `about stores in files (${STORE}=postgres)`;
