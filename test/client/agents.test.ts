/** A fleet of agents in virtual time; scripts/agents has a hundred of them for ninety days. */
import { expect, test } from 'vitest';
import { runFleet } from '../../scripts/lib/agents/fleet.ts';

test('ten agents for five days, killed, with answers dropped, outages and rollovers: all valid, no hook too many, none missed', async () => {
  const result = await runFleet({ agents: 10, days: 5, lifetime: 86_400_000, rolloverDays: 2, seed: 7 });
  expect(result.problems).toEqual([]);
  expect(result.certificates).toBeGreaterThan(50);
  for (const count of [result.kills, result.lostAnswers, result.refusals]) expect(count).toBeGreaterThan(0);
});
