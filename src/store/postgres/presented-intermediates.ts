import { type Outcome, undone } from '../calls/outcome.ts';
import type { PresentedIntermediate, PresentedPath } from '../intermediate-store.ts';
import { COUNT_EVERY, LIFETIME, MAX_INTERMEDIATES, MAX_PATHS } from '../rows/intermediate.ts';
import type { Queries } from './queries.ts';

/** The reads of what clients sent with their certificates. */
export function presentedIntermediateReads(db: Queries) {
  const path = db.prepare<[string], PresentedIntermediate>(
    `SELECT fingerprint, der FROM presented_path,
       unnest(string_to_array(intermediates, ' ')) WITH ORDINALITY AS part (fingerprint, place)
     JOIN presented_intermediate USING (fingerprint) WHERE leaf = ? ORDER BY place`,
  );
  return { recallIntermediates: (leaf: string): Promise<readonly PresentedIntermediate[]> => path.all(leaf) };
}

/** The writes. An intermediate is used whenever a path with it is, so it never goes before the path. */
export function presentedIntermediateWrites(db: Queries) {
  const savePath = db.prepare<[string, string, number]>(
    `INSERT INTO presented_path (leaf, intermediates, used_at) VALUES (?, ?, ?)
     ON CONFLICT (leaf) DO UPDATE SET intermediates = excluded.intermediates, used_at = excluded.used_at`,
  );
  const saveCertificate = db.prepare<[string, Buffer, number]>(
    `INSERT INTO presented_intermediate (fingerprint, der, used_at) VALUES (?, ?, ?)
     ON CONFLICT (fingerprint) DO UPDATE SET used_at = excluded.used_at`,
  );
  const old = (table: string, rest: string) =>
    db.prepare<[number]>(
      `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} ${rest} FOR UPDATE SKIP LOCKED))`,
    );
  const tables = ['presented_path', 'presented_intermediate'] as const;
  const forget = tables.map((table) => old(table, 'WHERE used_at <= ?'));
  const [boundPaths, boundCertificates] = [
    old(tables[0], 'ORDER BY used_at DESC OFFSET ?'),
    old(tables[1], 'ORDER BY used_at DESC OFFSET ?'),
  ] as const;
  let writes = 0;
  return {
    async rememberIntermediates({ leaf, intermediates }: PresentedPath, now: number): Promise<Outcome<undefined>> {
      await Promise.all([
        ...forget.map((statement) => statement.run(now - LIFETIME)),
        ...(writes++ % COUNT_EVERY === 0 ? [boundPaths.run(MAX_PATHS), boundCertificates.run(MAX_INTERMEDIATES)] : []),
        savePath.run(leaf, intermediates.map(({ fingerprint }) => fingerprint).join(' '), now),
        ...intermediates.map(({ fingerprint, der }) => saveCertificate.run(fingerprint, der, now)),
      ]);
      return undone(undefined);
    },
  };
}
