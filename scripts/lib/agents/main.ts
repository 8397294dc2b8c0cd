/** The command line of scripts/agents. */
import { parseArgs } from 'node:util';
import { runFleet } from './fleet.ts';
import { runServed } from './served.ts';

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '200' },
    days: { type: 'string', default: '90' },
    'lifetime-hours': { type: 'string', default: '48' },
    seed: { type: 'string', default: '1' },
    served: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help)
  process.stdout.write(`usage: scripts/agents [--agents N] [--days N] [--lifetime-hours N] [--seed N]
       scripts/agents --served [--agents N] [--days N] [--seed N]    processes, against the built server: a day of 200 agents takes 5 minutes
`);
else {
  const started = performance.now();
  const fleet = { agents: Number(values.agents), days: Number(values.days), seed: Number(values.seed) };
  const result = values.served
    ? await runServed({ ...fleet, perProcess: 10 })
    : await runFleet({ ...fleet, lifetime: Number(values['lifetime-hours']) * 3_600_000, rolloverDays: 30 });
  const seconds = Math.round((performance.now() - started) / 1000);
  process.stdout.write(`${JSON.stringify({ ...result, seconds }, null, 2)}\n`);
  if (result.problems.length > 0) process.exitCode = 1;
}
