/** Issue 16: the short form of `scripts/chaos`. */
import { describe, expect, test } from 'vitest';
import { FAULTS } from '../support/chaos/faults.ts';
import { runChaos } from '../support/chaos/run.ts';
import { requires } from '../support/requires.ts';

const NAMES = Object.keys(FAULTS);

describe.skipIf(!requires('softhsm', 'kdc', 'gssproxy', 'faketime', 'ext4', 'root'))('chaos under a mixed load', () => {
  test(
    'issue 16: each fault once, whatever is under way: nothing answered is lost, nothing issued is unrecorded, the service is whole again by itself',
    { timeout: 1_200_000 },
    async () => {
      // The day's seed: a failure names it, and scripts/chaos --seed repeats it.
      const seed = Math.floor(Date.now() / 86_400_000);
      const { wrong, faults, certificates } = await runChaos({ seed, rounds: NAMES.length });
      expect(wrong, `seed ${seed}`).toEqual([]);
      expect([...faults].sort()).toEqual([...NAMES].sort());
      expect(certificates).toBeGreaterThan(10 * NAMES.length);
    },
  );
});
