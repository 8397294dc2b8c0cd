import type { Db } from './database.ts';

/** Whether a device may have a certificate of a CA now; without a device nobody asks. */
export function mayIssueTo(db: Db): (device_key: string | null, ca: string, now: number) => boolean {
  const admitted = db.prepare<{ key: string; ca: string; now: number }, { id: string }>(
    `SELECT id FROM device WHERE key = @key AND enabled = 1 AND (not_after IS NULL OR not_after > @now)
     AND (ca IS NULL OR ca = @ca)`,
  );
  return (key, ca, now) => key === null || admitted.get({ key, ca, now }) !== undefined;
}
