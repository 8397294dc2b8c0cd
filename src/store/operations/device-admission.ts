import { type Database, type Operation, result } from './port.ts';

/**
 * Whether a device may have a certificate of a CA now; always true without a device. Locks the device against changes
 * until the transaction ends.
 */
export function mayIssueTo(
  db: Database,
): (required_device: string | null, ca: string, now: number) => Operation<boolean> {
  const admitted = db.prepare<{ key: string; ca: string; now: number }, { id: string }>(
    `SELECT id FROM device WHERE key = @key AND enabled = 1 AND (not_after IS NULL OR not_after > @now)
     AND (ca IS NULL OR ca = @ca) ${db.dialect.forShare}`,
  );
  const NO_DEVICE = result(true);
  return (key, ca, now) => (key === null ? NO_DEVICE : isThere(admitted.get({ key, ca, now })));
}

function* isThere(row: Operation<object | undefined>): Operation<boolean> {
  return (yield* row) !== undefined;
}
