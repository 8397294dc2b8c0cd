/** Checks on opening that all nodes use the lookup key with which the tokens' lookups were made. */
import { failed } from '../../errors.ts';
import type { LookupKeyOptions } from '../lookup-key-file.ts';
import { toEstuaryError } from './errors.ts';
import { OF_JWT } from '../otp-store.ts';
import { inStatus } from '../request-state.ts';
import { keyCheck } from '../lookup-key-file.ts';
import type { Connection } from './connection.ts';
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
  const db = new Queries((statement) => connection.query(statement));
  try {
    await db
      .prepare<[string | undefined]>(
        `INSERT INTO lookup_key (key_check) SELECT check_of FROM (SELECT ?::text AS check_of) AS given
         WHERE check_of IS NOT NULL ON CONFLICT DO NOTHING`,
      )
      .run(check);
    const known = await db.prepare<[], { key_check: string }>('SELECT key_check FROM lookup_key').get();
    if (known === undefined || known.key_check === check) return;
    // Live: usable, or needed to poll a queued request.
    const live = await db
      .prepare<{ now: number }, { id: string }>(
        `SELECT id FROM otp WHERE NOT ${OF_JWT} AND revoked_at IS NULL AND expires_at > @now AND (uses < max_uses
         OR EXISTS (SELECT 1 FROM request WHERE otp_id = otp.id AND ${inStatus(['pending', 'approved'])})) LIMIT 1`,
      )
      .get({ now });
    if (live !== undefined && required) throw otherKey(check === undefined);
    if (live === undefined && check !== undefined)
      await db.prepare<[string]>('UPDATE lookup_key SET key_check = ?').run(check);
  } catch (error) {
    throw toEstuaryError(error);
  }
}

function otherKey(missing: boolean): Error {
  const code = missing ? 'LOOKUP_KEY_MISSING' : 'LOOKUP_KEY_OTHER';
  return failed(code, 'the lookup key of one-time passwords is not the one of this store', {
    detail: `otp.lookup_key is ${missing ? 'missing' : 'a different key'}, and some valid tokens need the previous key (every server of the database needs the same key; or set otp.enabled = false and revoke these tokens: DELETE /admin/otp/{id})`,
  });
}
