import type { Queries } from './queries.ts';

/**
 * Whether a device may have a certificate of a CA now; without a device nobody asks. Whoever is about to change the device waits for the end
 * of the transaction that asked.
 */
export function mayIssueTo(db: Queries): (device_key: string | null, ca: string, now: number) => Promise<boolean> {
  const admitted = db.prepare<{ key: string; ca: string; now: number }, { id: string }>(
    `SELECT id FROM device WHERE key = @key AND enabled = 1 AND (not_after IS NULL OR not_after > @now)
     AND (ca IS NULL OR ca = @ca) FOR SHARE`,
  );
  return async (key, ca, now) => key === null || (await admitted.get({ key, ca, now })) !== undefined;
}
