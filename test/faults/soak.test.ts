/** The short form of `scripts/soak`. */
import { expect, test } from 'vitest';
import { growth, soak } from '../../scripts/lib/soak/soak.ts';

/** How long the load lasts, and after how long memory is measured, in seconds. */
const [LENGTH, WARM_UP] = [20, 8];

test(
  'twenty seconds of everything at once: no unexpected answer, every answered certificate stored, the audit chain whole, memory bounded',
  { timeout: 600_000 },
  async () => {
    const { samples, book, wrong } = await soak(LENGTH);
    expect(wrong).toEqual([]);
    // Every activity took place.
    const activities = [
      'enroll',
      'renew',
      'wrong password',
      'garbage',
      'renew a revoked one',
      'approve',
      'fetch',
      'ocsp',
      'crl',
      'reload',
    ];
    expect(activities.filter((name) => !book.outcomes.has(name))).toEqual([]);
    // V8 takes what there is for the first minutes: that memory is flat, the half hour of scripts/soak says.
    expect(growth(samples, WARM_UP)).toBeLessThan(1.5);
  },
);
