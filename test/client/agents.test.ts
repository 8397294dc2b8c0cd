/** A fleet of agents in virtual time; scripts/agents has two hundred for ninety days. */
import { expect, test } from 'vitest';
import { runFleet } from '../../scripts/lib/agents/fleet.ts';

test('no agent loses its key and certificate: kills, lost responses, outages, rollovers of CA and key type, a campaign, a disabled device, full disks', async () => {
  const result = await runFleet({ agents: 6, days: 8, lifetime: 86_400_000, rolloverDays: 3, seed: 7 });
  expect(result.problems).toEqual([]);
  expect(result.certificates).toBeGreaterThan(50);
  const { kills, lostAnswers, refusals, fullDisks, disabled, replaced, keyTypes } = result;
  expect(Math.min(kills, lostAnswers, refusals, fullDisks, disabled, replaced, keyTypes)).toBeGreaterThan(0);
});
