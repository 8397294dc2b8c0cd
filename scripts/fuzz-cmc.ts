/**
 * Fuzzes the CMC readers with V8's block coverage for guidance: `node scripts/fuzz-cmc.ts [seconds] [seed] [folder]`.
 *
 * Mutants that reach code which no other has reached join the corpus. Every exception that is no refusal, and every
 * message that twice takes more than 100 ms of CPU, is written to the folder and makes the exit code 1. `seconds` are
 * this process's CPU seconds. The last line says what was reached and how much memory it took.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { Session, type Profiler } from 'node:inspector';
import { join } from 'node:path';
import { isRefusal, readMessage, seeds } from '../test/fuzz/cmc-target.ts';
import { mutate, mutateTree, random } from '../test/fuzz/mutation.ts';

const [seconds = 60, seed = 1] = process.argv.slice(2, 4).map(Number);
const folder = process.argv[4] ?? 'coverage/fuzz-cmc';
const MAX_LENGTH = 64 * 1024;
const SLOW_MICROSECONDS = 100_000;
/** Mutants between two looks at the coverage, which cost more than most messages. */
const BATCH = 24;

type Interval = readonly [start: number, end: number];

/** What of each function that ran at all has never run. */
const missed = new Map<string, readonly Interval[]>();
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Whether something ran since the last call that had never run before. */
function reachedMore(): boolean {
  let more = false;
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error;
    for (const { url, functions } of result)
      if (/\/src\/(cmc|pki)\//.test(url)) for (const ran of functions) more = merge(url, ran) || more;
  });
  return more;
}

function merge(url: string, { ranges }: Profiler.FunctionCoverage): boolean {
  const [whole] = ranges;
  if (whole === undefined || whole.count === 0) return false;
  const key = `${url}:${whole.startOffset}`;
  const now = ranges
    .filter(({ count }) => count === 0)
    .map(({ startOffset, endOffset }): Interval => [startOffset, endOffset]);
  const before = missed.get(key) ?? [[whole.startOffset, whole.endOffset]];
  const still = before.flatMap(([start, end]) =>
    now.map(([from, to]): Interval => [Math.max(start, from), Math.min(end, to)]).filter(([from, to]) => from < to),
  );
  missed.set(key, still);
  return total(still) < total(before);
}

const total = (intervals: readonly Interval[]): number => intervals.reduce((sum, [start, end]) => sum + end - start, 0);

const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

let findings = 0;
function report(what: string, message: Buffer): void {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `finding-${++findings}.der`);
  writeFileSync(file, message);
  console.log(`${what}: ${file}`);
}

/** CPU microseconds of one reading. */
async function read(message: Buffer): Promise<number> {
  const start = cpu();
  try {
    await readMessage(message);
  } catch (error) {
    if (!isRefusal(error)) report(String(error), message);
  }
  return cpu() - start;
}

let slowest = 0;
async function check(message: Buffer): Promise<void> {
  let time = await read(message);
  if (time > SLOW_MICROSECONDS) time = Math.min(time, await read(message));
  slowest = Math.max(slowest, time);
  if (time > SLOW_MICROSECONDS) report(`${time} microseconds`, message);
}

const corpus = await seeds();
for (const message of corpus) await check(message);
reachedMore();

const next = random(seed);
const choose = (): Buffer => corpus[next(corpus.length)] ?? Buffer.alloc(0);
function mutant(): Buffer {
  let message = choose();
  for (let times = 1 + next(3); times > 0; times--)
    message = next(3) === 0 ? mutate(message, next) : mutateTree(message, choose(), next);
  return message.subarray(0, MAX_LENGTH);
}

let messages = 0;
const summary = (): string =>
  `${Math.round(cpu() / 1e6)} CPU s, ${messages} messages, ${corpus.length} in the corpus, ` +
  `${total([...missed.values()].flat())} characters not reached in ${missed.size} functions, ` +
  `slowest ${Math.round(slowest / 1000)} ms, ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB, ${findings} findings`;

for (let progress = 0; cpu() < seconds * 1e6;) {
  // What each of a batch reached is only known when it is alone; a batch that reached nothing new needs no such care.
  const batch = Array.from({ length: BATCH }, mutant);
  const known = new Map(missed);
  for (const message of batch) await check(message);
  messages += batch.length;
  if (reachedMore()) {
    missed.clear();
    for (const [key, intervals] of known) missed.set(key, intervals);
    for (const message of batch) {
      await read(message);
      if (reachedMore()) corpus.push(message);
    }
  }
  if (cpu() > progress) {
    console.log(summary());
    progress = cpu() + 30e6;
  }
}
console.log(summary());
if (findings > 0) process.exitCode = 1;
