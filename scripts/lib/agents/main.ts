/** The command line of scripts/agents. */
import { parseArgs } from 'node:util';
import { runFleet } from './fleet.ts';

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '100' },
    days: { type: 'string', default: '90' },
    'lifetime-hours': { type: 'string', default: '48' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help)
  process.stdout.write('usage: scripts/agents [--agents N] [--days N] [--lifetime-hours N] [--seed N]\n');
else {
  const started = performance.now();
  const result = await runFleet({
    agents: Number(values.agents),
    days: Number(values.days),
    lifetime: Number(values['lifetime-hours']) * 3_600_000,
    rolloverDays: 30,
    seed: Number(values.seed),
  });
  const seconds = Math.round((performance.now() - started) / 1000);
  process.stdout.write(`${JSON.stringify({ ...result, seconds }, null, 2)}\n`);
  if (result.problems.length > 0) process.exitCode = 1;
}
