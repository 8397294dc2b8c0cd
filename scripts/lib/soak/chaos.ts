/** `scripts/chaos [--rounds N] [--seed N] [--fault NAME]…`: faults under a mixed load, one after the other. */
import { parseArgs } from 'node:util';
import { FAULTS } from '../../../test/support/chaos/faults.ts';
import { runChaos } from '../../../test/support/chaos/run.ts';

const HELP = `scripts/chaos [--rounds 500] [--seed 1] [--fault NAME]…

  --rounds N     how many faults, each after the service has recovered from the one before
  --seed N       of their order and times
  --fault NAME   these alone; repeatable:
${Object.keys(FAULTS)
  .map((name) => `                 ${name}`)
  .join('\n')}

Needs root, for a separate disk. The exit code is 1 if an answered certificate is lost, a certificate is issued without a record, a password yields two certificates, or the audit chain is broken.`;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    fault: { type: 'string', multiple: true },
    help: { type: 'boolean', default: false },
  },
});

function wholeNumber(option: 'rounds' | 'seed'): number {
  const value = Number(values[option]);
  if (Number.isInteger(value) && value >= 1 && value < 2 ** 32) return value;
  console.error(`--${option}: "${values[option]}" is not a whole number from 1`);
  return process.exit(2);
}

async function main(): Promise<void> {
  const [seed, rounds] = [wholeNumber('seed'), wholeNumber('rounds')];
  for (const name of values.fault ?? [])
    if (!(name in FAULTS)) {
      console.error(`--fault: there is no "${name}"`);
      process.exit(2);
    }
  const { wrong, certificates } = await runChaos({
    seed,
    rounds,
    only: values.fault,
    onRound: (round, fault, ms) => console.log(`${round}/${rounds} ${fault}: ${(ms / 1000).toFixed(1)} s`),
  });
  for (const problem of wrong) console.error(`WRONG: ${problem}`);
  console.log(
    `seed ${seed}: ${certificates} certificates were answered; ${wrong.length === 0 ? 'nothing was lost, all is recorded' : `${wrong.length} things are wrong`}`,
  );
  if (wrong.length > 0) process.exitCode = 1;
}

if (values.help) console.log(HELP);
else await main();
