/** The command line of scripts/agents. */
import { parseArgs } from 'node:util';
import { runFleet } from './fleet.ts';
import { runServed } from './served.ts';
import { runStates } from './states.ts';

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '200' },
    days: { type: 'string', default: '90' },
    'lifetime-hours': { type: 'string', default: '48' },
    seed: { type: 'string', default: '1' },
    served: { type: 'boolean', default: false },
    states: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help)
  process.stdout.write(`usage: scripts/agents [--agents N] [--days N] [--lifetime-hours N] [--seed N]
       scripts/agents --served [--agents N] [--days N] [--seed N]    processes, against the built server: a day of 200 agents takes 5 minutes
       scripts/agents --states [--agents N] [--lifetime-hours N] [--seed N]    against a server in virtual time, which knows each agent's state
`);
else {
  const started = performance.now();
  const fleet = { agents: Number(values.agents), days: Number(values.days), seed: Number(values.seed) };
  const hours = Number(values['lifetime-hours']);
  const result = values.served
    ? await runServed({ ...fleet, perProcess: 10 })
    : values.states
      ? await runStates({ ...fleet, lifetime: Math.ceil(hours / 24), progress: (text) => process.stderr.write(text) })
      : await runFleet({ ...fleet, lifetime: hours * 3_600_000, rolloverDays: 30 });
  const seconds = Math.round((performance.now() - started) / 1000);
  process.stdout.write(`${JSON.stringify({ ...result, seconds }, null, 2)}\n`);
  if (result.problems.length > 0) process.exitCode = 1;
}
