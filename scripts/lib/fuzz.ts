/** `scripts/fuzz`: drives the parsers of bytes from outside (test/fuzz/targets.ts), one after the other. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Coverage } from '../../test/fuzz/coverage.ts';
import { Fuzzer, type Finding } from '../../test/fuzz/fuzzer.ts';
import { TARGETS } from '../../test/fuzz/targets.ts';
import { TlsProbe } from '../../test/fuzz/tls-probe.ts';
import { Watchdog } from '../../test/fuzz/watchdog.ts';

const USAGE = `Usage: scripts/fuzz [OPTION…]

  --target NAME    only this parser; repeatable. ${Object.keys(TARGETS).join(', ')}
  --seconds N      CPU seconds in all, shared by the targets (60)
  --seed N         of the changes that are made to inputs (1)
  --corpus FOLDER  reads inputs of earlier runs from FOLDER/TARGET, and adds those that reach something new
  --findings FOLDER  where the inputs of findings go (coverage/fuzz)
  --cpu-factor N     times the CPU time that one input may take (1); for machines that are busy
  --replay FILE    reads one finding again, of the file that a run wrote
`;

const { values } = parseArgs({
  options: {
    target: { type: 'string', multiple: true },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    corpus: { type: 'string' },
    findings: { type: 'string', default: 'coverage/fuzz' },
    'cpu-factor': { type: 'string', default: '1' },
    replay: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const { corpus, findings } = values;
const seed = Number(values.seed);

/** Before any of our code is loaded: V8 counts the blocks of what it compiles afterwards. */
const coverage = new Coverage();
const watchdog = new Watchdog(join(findings, 'hangs.bin'));
const probe = await TlsProbe.open();
/** What an exception thrown outside of any promise of ours belongs to. */
let running = '';
/** Background services of the targets. */
const stops: (() => Promise<void>)[] = [];

async function fuzzer(name: string, seconds: number): Promise<Fuzzer> {
  const load = TARGETS[name];
  if (load === undefined) throw new Error(`there is no target ${name}; there are ${Object.keys(TARGETS).join(', ')}`);
  running = name;
  const { target } = await load();
  if (target.stop !== undefined) stops.push(target.stop);
  return new Fuzzer({
    target,
    seed,
    seconds,
    cpuFactor: Number(values['cpu-factor']),
    coverage,
    watchdog,
    probe,
    corpus: corpus === undefined ? [] : readAll(join(corpus, name)),
    onFinding: (finding) => write(name, finding),
    onReached: (input) => keep(name, input),
  });
}

function readAll(folder: string): Buffer[] {
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder)
    .sort()
    .map((file) => readFileSync(join(folder, file)));
}

const digest = (input: Buffer): string => createHash('sha256').update(input).digest('hex').slice(0, 16);

function keep(name: string, input: Buffer): void {
  if (corpus !== undefined) writeFileSync(join(corpus, name, digest(input)), input);
}

/** The file is all that a replay needs. */
function write(target: string, { what, input }: Finding): void {
  mkdirSync(findings, { recursive: true });
  const file = join(findings, `${target}-${digest(input)}.json`);
  writeFileSync(file, JSON.stringify({ target, seed, what, input: input.toString('base64') }, undefined, 2));
  console.log(
    `FINDING in ${target} (seed ${seed}): ${what}\n  input: ${input.toString('base64')}\n  replay: --replay ${file}`,
  );
}

async function replay(file: string): Promise<number> {
  const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (typeof found !== 'object' || found === null || !('target' in found) || !('input' in found))
    throw new Error(`${file} holds no finding`);
  const one = await fuzzer(String(found.target), 0);
  return one.replay(Buffer.from(String(found.input), 'base64'));
}

async function fuzz(names: readonly string[]): Promise<number> {
  let found = 0;
  for (const name of names) {
    const result = await (await fuzzer(name, Number(values.seconds) / names.length)).run();
    found += result.findings;
    console.log(
      `${name}: ${result.cpuSeconds.toFixed(1)} CPU s, ${result.executions} inputs (${result.accepted} read to the end), ` +
        `${result.corpus} in the corpus, ${coverage.toString()}, slowest ${result.slowest.toFixed(1)} ms, ` +
        `${result.findings} findings`,
    );
  }
  return found;
}

process.on('unhandledRejection', (error) => {
  console.log(`FINDING in ${running}: a promise that nobody waited for: ${String(error)}`);
  process.exitCode = 1;
});

if (values.help) process.stdout.write(USAGE);
else {
  const found =
    values.replay === undefined ? await fuzz(values.target ?? Object.keys(TARGETS)) : await replay(values.replay);
  if (found > 0) process.exitCode = 1;
}
for (const stop of stops) await stop();
await probe.close();
await watchdog.stop();
