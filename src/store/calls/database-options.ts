/** What a thread needs to open the database. */

export interface LookupKeyOptions {
  /** `otp.lookup_key`; undefined: the file next to the store, which is created if missing. */
  readonly configured: Uint8Array | undefined;
  /** Whether one-time passwords are on; without them, a store with a lost key may be opened. */
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
  /** In every audit record; the chain belongs to this node. */
  readonly node: string;
}

export interface PostgresServer {
  /** As in libpq: `postgresql://user:password@host:5432/database`, with several hosts separated by commas. A secret. */
  readonly url: string;
  /** Default: per the URL's `sslmode`. */
  readonly tls?: PostgresTls | undefined;
}

/** PEM. */
export interface PostgresTls {
  /** Trust anchors for the server's certificate; default: the system's. */
  readonly anchors?: string | undefined;
  readonly certificate?: string | undefined;
  readonly private_key?: string | undefined;
}

export type DatabaseOptions = SqliteDatabase | PostgresDatabase;

export const isDatabaseOptions = (value: unknown): value is DatabaseOptions =>
  typeof value === 'object' && value !== null && 'driver' in value && 'audit_file' in value;
