/** Checks on opening that all nodes use the lookup key with which the tokens' lookups were made. */
import { keyCheck, type KeyTrouble, type LookupKeyOptions, lookupKeyTrouble } from '../lookup-key-file.ts';
import { hasLiveTokens } from '../otp-store.ts';
import { run } from '../port.ts';
import type { Connection } from './connection.ts';
import { toEstuaryError } from './errors.ts';
import { PostgresPort } from './port.ts';
import { Queries } from './queries.ts';

/**
 * Stores the key's check value, or compares it.
 * @throws EstuaryError 500 `LOOKUP_KEY_MISSING`, `LOOKUP_KEY_OTHER` while tokens are live that only the old key finds
 */
export async function settleLookups(
  connection: Connection,
  { configured, required }: LookupKeyOptions,
  now: number,
): Promise<void> {
  // Without it, one-time passwords are off (config/rules/index.ts).
  if (configured === undefined && !required) return;
  const check = configured === undefined ? undefined : keyCheck(Buffer.from(configured));
  const db = new Queries(connection);
  try {
    if (check !== undefined) await db.run`INSERT INTO lookup_key (key_check) VALUES (${check}) ON CONFLICT DO NOTHING`;
    const known = await db.get<{ key_check: string }>`SELECT key_check FROM lookup_key`;
    if (known === undefined || known.key_check === check) return;
    const isLive = await run(hasLiveTokens(new PostgresPort(db), now));
    if (isLive && required) throw otherKey(check === undefined ? 'missing' : 'other');
    if (!isLive && check !== undefined) await db.run`UPDATE lookup_key SET key_check = ${check}`;
  } catch (error) {
    throw toEstuaryError(error);
  }
}

function otherKey(trouble: KeyTrouble): Error {
  return lookupKeyTrouble(
    trouble,
    `otp.lookup_key is ${trouble === 'missing' ? 'missing' : 'a different key'}, and some valid tokens need the previous key (every server of the database needs the same key; or set otp.enabled = false and revoke these tokens: DELETE /admin/otp/{id})`,
  );
}
