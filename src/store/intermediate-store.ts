/** CA certificates that clients sent with theirs. */
import { undone } from './calls/calls.ts';
import { type Calls, lock, quickRead, write } from './operation.ts';
import { type Database, NO_LIMIT, type Operation, type Write } from './port.ts';

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
  return {
    /** By fingerprint of the client's certificate; empty if none. */
    recallIntermediates: quickRead(function* (leaf: string): Operation<readonly PresentedIntermediate[]> {
      const sql = 'SELECT intermediates FROM presented_path WHERE leaf = ?';
      const path = yield* db.get<{ intermediates: string }>(sql, leaf);
      if (path === undefined) return [];
      const fingerprints = path.intermediates.split(' ');
      const rows = yield* db.all<PresentedIntermediate>`SELECT fingerprint, der FROM presented_intermediate
        WHERE fingerprint = ANY(${fingerprints})`;
      const known = new Map(rows.map((row) => [row.fingerprint, row]));
      return fingerprints.flatMap((fingerprint) => known.get(fingerprint) ?? []);
    }),
  };
}

const remembered = ({ leaf, intermediates }: PresentedPath) => [
  ...lock.path(leaf),
  ...intermediates.flatMap(({ fingerprint }) => lock.intermediate(fingerprint)),
];

/** A path's intermediates are used with it, so they are never deleted before it. */
export function intermediateWrites(db: Database) {
  const remove = (table: string, key: string, selection: string, parameter: number) =>
    db.run(`DELETE FROM ${table} WHERE ${db.dialect.among(table, key, selection)}`, parameter);
  const longUnused = 'WHERE used_at <= ?';
  const longestAgo = `ORDER BY used_at DESC ${NO_LIMIT} OFFSET ?`;
  let writes = 0;
  return {
    /** Replaces this client's certificates. Entries that are unused for long are deleted. */
    rememberIntermediates: write(remembered, function* (path: PresentedPath, now: number): Write<void> {
      const { leaf, intermediates } = path;
      const fingerprints = intermediates.map(({ fingerprint }) => fingerprint).join(' ');
      const bounds = writes++ % COUNT_EVERY === 0;
      yield* db.together([
        remove('presented_path', 'leaf', longUnused, now - LIFETIME),
        remove('presented_intermediate', 'fingerprint', longUnused, now - LIFETIME),
        ...(bounds
          ? [
              remove('presented_path', 'leaf', longestAgo, MAX_PATHS),
              remove('presented_intermediate', 'fingerprint', longestAgo, MAX_INTERMEDIATES),
            ]
          : []),
        db.run`INSERT INTO presented_path (leaf, intermediates, used_at) VALUES (${leaf}, ${fingerprints}, ${now})
          ON CONFLICT (leaf) DO UPDATE SET intermediates = excluded.intermediates, used_at = excluded.used_at`,
        ...intermediates.map(
          ({ fingerprint, der }) =>
            db.run`INSERT INTO presented_intermediate (fingerprint, der, used_at) VALUES (${fingerprint}, ${der}, ${now})
              ON CONFLICT (fingerprint) DO UPDATE SET used_at = excluded.used_at`,
        ),
      ]);
      return undone(undefined);
    }),
  };
}

/** CA certificates that clients send with theirs. */
export type IntermediateStore = Calls<ReturnType<typeof intermediateReads> & ReturnType<typeof intermediateWrites>>;
