import { CAPACITY, type RevocationWatch } from '../calls/revoked-serials.ts';
import type { Db } from './database.ts';

export function watchRevocations(db: Db, capacity = CAPACITY): RevocationWatch {
  let revoked: string[] = [];
  db.function('estuary_revoked', (serial: unknown) => {
    revoked.push(String(serial));
    return null;
  });
  for (const change of ['INSERT', 'UPDATE OF revoked_at'])
    db.exec(`CREATE TEMP TRIGGER revoked_by_${change.slice(0, 6).toLowerCase()} AFTER ${change} ON main.certificate
      WHEN NEW.revoked_at IS NOT NULL BEGIN SELECT estuary_revoked(NEW.serial); END`);
  const all = db
    .prepare<[number], string>('SELECT serial FROM certificate WHERE revoked_at IS NOT NULL LIMIT ?')
    .pluck();
  return {
    known: () => all.all(capacity + 1),
    take() {
      const taken = revoked;
      revoked = [];
      return taken;
    },
  };
}
