import type { PresentedIntermediate, PresentedPath } from '../intermediate-store.ts';
import { COUNT_EVERY, LIFETIME, MAX_INTERMEDIATES, MAX_PATHS } from '../rows/intermediate.ts';
import type { Db } from './database.ts';
import { type Outcome, undone } from '../calls/outcome.ts';

/** The reads of what clients sent with their certificates. */
export function presentedIntermediateReads(db: Db) {
  const path = db.prepare<[string], { intermediates: string }>(
    'SELECT intermediates FROM presented_path WHERE leaf = ?',
  );
  const certificate = db.prepare<[string], PresentedIntermediate>(
    'SELECT fingerprint, der FROM presented_intermediate WHERE fingerprint = ?',
  );
  return {
    recallIntermediates(leaf: string): readonly PresentedIntermediate[] {
      const fingerprints = path.get(leaf)?.intermediates.split(' ') ?? [];
      return fingerprints.flatMap((fingerprint) => certificate.get(fingerprint) ?? []);
    },
  };
}

/** The writes. An intermediate is used whenever a path with it is, so it never goes before the path. */
export function presentedIntermediateWrites(db: Db) {
  const savePath = db.prepare<[string, string, number]>(
    'INSERT OR REPLACE INTO presented_path (leaf, intermediates, used_at) VALUES (?, ?, ?)',
  );
  const saveCertificate = db.prepare<[string, Buffer, number]>(
    `INSERT INTO presented_intermediate (fingerprint, der, used_at) VALUES (?, ?, ?)
     ON CONFLICT (fingerprint) DO UPDATE SET used_at = excluded.used_at`,
  );
  const forget = ['presented_path', 'presented_intermediate'].map((table) =>
    db.prepare<[number]>(`DELETE FROM ${table} WHERE used_at <= ?`),
  );
  const bound = [
    db.prepare<[number]>(
      `DELETE FROM presented_path WHERE leaf IN
       (SELECT leaf FROM presented_path ORDER BY used_at DESC LIMIT -1 OFFSET ?)`,
    ),
    db.prepare<[number]>(
      `DELETE FROM presented_intermediate WHERE fingerprint IN
       (SELECT fingerprint FROM presented_intermediate ORDER BY used_at DESC LIMIT -1 OFFSET ?)`,
    ),
  ] as const;
  let writes = 0;
  return {
    rememberIntermediates({ leaf, intermediates }: PresentedPath, now: number): Outcome<undefined> {
      for (const statement of forget) statement.run(now - LIFETIME);
      if (writes++ % COUNT_EVERY === 0) {
        bound[0].run(MAX_PATHS);
        bound[1].run(MAX_INTERMEDIATES);
      }
      savePath.run(leaf, intermediates.map(({ fingerprint }) => fingerprint).join(' '), now);
      for (const { fingerprint, der } of intermediates) saveCertificate.run(fingerprint, der, now);
      return undone(undefined);
    },
  };
}
