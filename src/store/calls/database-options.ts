/** What a thread needs to open the database. */

/** The key of the tokens' lookups. */
export interface LookupKeyOptions {
  /** `otp.lookup_key`; undefined: the file beside the store, which is made where it is missing. */
  readonly configured: Uint8Array | undefined;
  /** Whether one-time passwords are on: without them, a store whose key was lost may be opened. */
  readonly required: boolean;
}

interface AnyDatabase {
  readonly audit_file: string;
  /** Of the writer. */
  readonly lookup_key: LookupKeyOptions;
}

export interface SqliteDatabase extends AnyDatabase {
  readonly driver: 'sqlite';
  readonly path: string;
  /** In every audit record. */
  readonly node: string | undefined;
}

export interface PostgresDatabase extends AnyDatabase {
  readonly driver: 'postgres';
  readonly server: PostgresServer;
  /** In every audit record; the chain of records is this node's. */
  readonly node: string;
}

/** Where PostgreSQL is, and who comes. */
export interface PostgresServer {
  /** As libpq has it: `postgresql://user:password@host:5432/database`; several hosts with commas between. A secret. */
  readonly url: string;
  /** absent: as the URL's `sslmode` says. */
  readonly tls?: PostgresTls | undefined;
}

/** PEM. */
export interface PostgresTls {
  /** Whom the server's certificate has to come from; absent: the anchors of the system. */
  readonly anchors?: string | undefined;
  readonly certificate?: string | undefined;
  readonly private_key?: string | undefined;
}

export type DatabaseOptions = SqliteDatabase | PostgresDatabase;

export const isDatabaseOptions = (value: unknown): value is DatabaseOptions =>
  typeof value === 'object' && value !== null && 'driver' in value && 'audit_file' in value;
