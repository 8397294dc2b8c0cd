/** Inputs that `scripts/fuzz` has found something with. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/openssl.ts';
import { Coverage } from './coverage.ts';
import { Fuzzer, type Finding } from './fuzzer.ts';
import { TARGETS } from './targets.ts';
import { TlsProbe } from './tls-probe.ts';
import { Watchdog } from './watchdog.ts';

const folder = temporaryFolder();
const watchdog = new Watchdog(folder.file('hang'));
const coverage = new Coverage();
let probe: TlsProbe;
beforeAll(async () => {
  probe = await TlsProbe.open();
});
afterAll(async () => {
  await probe.close();
  await watchdog.stop();
  folder.remove();
});

test.each<[what: string, target: string, input: string]>([
  ['a key of 60,000 characters is compared with all that are known', 'configuration', `${'port'.repeat(15_000)} = 1`],
  ['each of many problems is compared with each other', 'configuration', '[[serverkeygen.keys]]\n'.repeat(500)],
  ['each of many spaces in a name is taken for the first of those at its end', 'name', `CN${' '.repeat(30_000)}x=y`],
  ['each of many backslashes is taken for the first of those at the end', 'name', `CN=${'\\'.repeat(40_000)}x`],
])('%s', async (_, name, input) => {
  const load = TARGETS[name];
  if (load === undefined) throw new Error(`no target ${name}`);
  const findings: Finding[] = [];
  const fuzzer = new Fuzzer({
    target: (await load()).target,
    seed: 1,
    seconds: 0,
    coverage,
    watchdog,
    probe,
    corpus: [],
    onFinding: (finding) => findings.push(finding),
    onReached: () => undefined,
  });
  await fuzzer.replay(Buffer.from(input, 'latin1'));
  expect(findings.map(({ what }) => what)).toEqual([]);
});
