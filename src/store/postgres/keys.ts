/** Locks what the calls of a transaction could conflict on. */
import type { Call } from '../calls/write-queue.ts';
import { CONCERNING, DEVICE_KEY, EVERYTHING, type Keys } from '../operation.ts';
import { DEVICE_ID } from '../device-store.ts';
import type { Queries } from './queries.ts';

/** undefined: conflicts with every call. */
export const keysOfCall = ({ operation: { keys }, args }: Call): Keys | undefined =>
  keys === EVERYTHING ? undefined : keys(...args);

const locked = (names: string): string => `SELECT pg_advisory_xact_lock(key) FROM
  (SELECT DISTINCT hashtextextended(name, 17) AS key FROM ${names} ORDER BY key) AS ordered`;
const LOCK = locked('unnest(@names::text[]) AS name');
const LOCK_WITH_ROWS = locked(`(
    SELECT unnest(@names::text[]) AS name
    UNION ALL SELECT 'token ' || otp_id FROM reservation WHERE request_id = ANY(@requests::text[])
    UNION ALL SELECT 'token ' || otp_id FROM request WHERE id = ANY(@requests::text[])
    UNION ALL SELECT 'device ' || ${DEVICE_ID} FROM device WHERE key = ANY(@devices::text[])
      OR key IN (SELECT device_key FROM request WHERE id = ANY(@requests::text[]))
  ) AS named WHERE name IS NOT NULL`);

/** Locks keys until the end of the transaction, all at once in a global order. */
export function lock(db: Queries, names: readonly string[]): Promise<unknown> {
  const requests = after(names, CONCERNING);
  const devices = after(names, DEVICE_KEY);
  return db.all(requests.length + devices.length === 0 ? LOCK : LOCK_WITH_ROWS, { names, requests, devices });
}

const after = (keys: readonly string[], beginning: string): string[] =>
  keys.filter((key) => key.startsWith(beginning)).map((key) => key.slice(beginning.length));
