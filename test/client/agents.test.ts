/** Fleets of agents in virtual time; scripts/agents has two hundred of each. */
import { expect, test } from 'vitest';
import { runFleet } from '../../scripts/lib/agents/fleet.ts';
import { runStates } from '../../scripts/lib/agents/states.ts';
import { HOLDER_STATES } from '../../src/store/holder-state.ts';
import { requires } from '../support/requires.ts';

test('no agent loses its key and certificate: kills, lost responses, outages, rollovers of CA and key type, a campaign, a disabled device, full disks', async () => {
  const result = await runFleet({ agents: 6, days: 8, lifetime: 86_400_000, rolloverDays: 3, seed: 7 });
  expect(result.problems).toEqual([]);
  expect(result.certificates).toBeGreaterThan(50);
  const { kills, lostAnswers, refusals, fullDisks, disabled, replaced, keyTypes } = result;
  expect(Math.min(kills, lostAnswers, refusals, fullDisks, disabled, replaced, keyTypes)).toBeGreaterThan(0);
});

test.skipIf(!requires('softhsm'))(
  'every agent that dies, loses its disk, is off for long, comes back expired, or fails is in its state within a minute, and a rollover that waits cuts off nobody',
  async () => {
    const { problems, states, ...counts } = await runStates({ agents: 10, lifetime: 1, seed: 57 });
    expect(problems).toEqual([]);
    expect(Object.keys(states).sort()).toEqual(HOLDER_STATES.toSorted());
    expect(Math.min(counts.deaths, counts.unavailable, counts.checks, counts.cutOff)).toBeGreaterThan(0);
  },
  1_800_000,
);
