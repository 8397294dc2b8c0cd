/** Opens the database of a thread with the driver of the configuration. */
import { openPostgresWriter } from '../postgres/roles.ts';
import { openReader, openWriter } from '../sqlite/roles.ts';
import type { DatabaseOptions } from './database-options.ts';
import type { Role } from './role.ts';

/**
 * @param time milliseconds since the epoch, for records about what is found
 * @throws EstuaryError why the database or the audit file cannot be used
 */
export async function openRole(
  options: DatabaseOptions & { readonly role: 'writer' | 'reader' },
  time: number,
): Promise<Role> {
  if (options.driver === 'postgres') return openPostgresWriter(options, time);
  return Promise.resolve(options.role === 'writer' ? openWriter(options, time) : openReader(options));
}
