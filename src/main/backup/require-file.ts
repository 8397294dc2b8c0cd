import type { Config } from '../../config/schema.ts';
import { failed } from '../../errors.ts';

/** @throws EstuaryError 500 `STORE_NOT_A_FILE` where the store is in a database that has means of its own for it */
export function requireFile(driver: Config['store']['driver']): void {
  if (driver === 'sqlite') return;
  throw failed(
    'STORE_NOT_A_FILE',
    'store.driver is "postgres": back the database up and restore it with PostgreSQL\'s own means, continuous archiving with point-in-time recovery (pg_basebackup) or pg_dump and pg_restore (docs/postgresql.md).',
  );
}
