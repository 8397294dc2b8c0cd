/** Inputs with which `scripts/fuzz` found defects. */
import { expect, test } from 'vitest';
import type { Finding } from './fuzzer.ts';
import { fuzzing } from './in-test.ts';
import { TARGETS } from './targets.ts';

const { of: fuzzerOf } = fuzzing();

test.each<[what: string, target: string, input: string]>([
  ['a key of 60,000 characters is compared with all that are known', 'configuration', `${'port'.repeat(15_000)} = 1`],
  ['each of many problems is compared with each other', 'configuration', '[[serverkeygen.keys]]\n'.repeat(500)],
  ['each of many spaces in a name is taken for the first of those at its end', 'name', `CN${' '.repeat(30_000)}x=y`],
  ['each of many backslashes is taken for the first of those at the end', 'name', `CN=${'\\'.repeat(40_000)}x`],
])('%s', async (_, name, input) => {
  const load = TARGETS[name];
  if (load === undefined) throw new Error(`no target ${name}`);
  const findings: Finding[] = [];
  const fuzzer = fuzzerOf((await load()).target, findings);
  await fuzzer.replay(Buffer.from(input, 'latin1'));
  expect(findings.map(({ what }) => what)).toEqual([]);
});
