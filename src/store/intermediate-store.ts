/** CA certificates that clients sent with theirs. */
import { undone } from './calls/calls.ts';
import { type Calls, type Database, NO_LIMIT, type Operation, type Write } from './port.ts';

/** A CA certificate that a client sent in a handshake. */
export interface PresentedIntermediate {
  /** Hex SHA-256 of `der`. */
  readonly fingerprint: string;
  readonly der: Buffer;
}

/** The certificates from a client's handshake that its path to an anchor needed. */
export interface PresentedPath {
  /** Hex SHA-256 of the client's certificate. */
  readonly leaf: string;
  /** The client's issuer first. */
  readonly intermediates: readonly PresentedIntermediate[];
}

/** Milliseconds since the last use; resumed TLS sessions are at most days old. */
const LIFETIME = 30 * 86_400_000;
/** Above these numbers, the least recently used are deleted. */
const MAX_PATHS = 100_000;
const MAX_INTERMEDIATES = 10_000;
/** Writes between two counts. */
const COUNT_EVERY = 1000;

export function intermediateReads(db: Database) {
  const path = db.prepare<[string], { intermediates: string }>(
    'SELECT intermediates FROM presented_path WHERE leaf = ?',
  );
  const certificates = db.prepare<[readonly string[]], PresentedIntermediate>(
    `SELECT fingerprint, der FROM presented_intermediate WHERE ${db.dialect.oneOf('fingerprint', '?')}`,
  );
  return {
    /** By fingerprint of the client's certificate; empty if none. */
    *recallIntermediates(leaf: string): Operation<readonly PresentedIntermediate[]> {
      const fingerprints = (yield* path.get(leaf))?.intermediates.split(' ') ?? [];
      if (fingerprints.length === 0) return [];
      const known = new Map((yield* certificates.all(fingerprints)).map((one) => [one.fingerprint, one]));
      return fingerprints.flatMap((fingerprint) => known.get(fingerprint) ?? []);
    },
  };
}

/** A path's intermediates are used with it, so they are never deleted before it. */
export function intermediateWrites(db: Database) {
  const savePath = db.prepare<[string, string, number]>(
    `INSERT INTO presented_path (leaf, intermediates, used_at) VALUES (?, ?, ?)
     ON CONFLICT (leaf) DO UPDATE SET intermediates = excluded.intermediates, used_at = excluded.used_at`,
  );
  const saveCertificate = db.prepare<[string, Buffer, number]>(
    `INSERT INTO presented_intermediate (fingerprint, der, used_at) VALUES (?, ?, ?)
     ON CONFLICT (fingerprint) DO UPDATE SET used_at = excluded.used_at`,
  );
  const remove = (table: string, key: string, selection: string) =>
    db.prepare<[number]>(`DELETE FROM ${table} WHERE ${db.dialect.among(table, key, selection)}`);
  const forgetPaths = remove('presented_path', 'leaf', 'WHERE used_at <= ?');
  const forgetCertificates = remove('presented_intermediate', 'fingerprint', 'WHERE used_at <= ?');
  const longestAgo = `ORDER BY used_at DESC ${NO_LIMIT} OFFSET ?`;
  const boundPaths = remove('presented_path', 'leaf', longestAgo);
  const boundCertificates = remove('presented_intermediate', 'fingerprint', longestAgo);
  let writes = 0;
  return {
    /** Replaces this client's certificates. Entries that are unused for long are deleted. */
    *rememberIntermediates({ leaf, intermediates }: PresentedPath, now: number): Write<void> {
      const bounds = writes++ % COUNT_EVERY === 0;
      yield* db.together([
        forgetPaths.run(now - LIFETIME),
        forgetCertificates.run(now - LIFETIME),
        ...(bounds ? [boundPaths.run(MAX_PATHS), boundCertificates.run(MAX_INTERMEDIATES)] : []),
        savePath.run(leaf, intermediates.map(({ fingerprint }) => fingerprint).join(' '), now),
        ...intermediates.map(({ fingerprint, der }) => saveCertificate.run(fingerprint, der, now)),
      ]);
      return undone(undefined);
    },
  };
}

/** CA certificates that clients send with theirs. */
export type IntermediateStore = Calls<ReturnType<typeof intermediateReads> & ReturnType<typeof intermediateWrites>>;
