/**
 * `scripts/mutate`: changes the rules one by one, and lists the changes that no test notices.
 *
 * A first run of the tests notes which of them reach which change; a change is then tried on those alone, the fast ones first. What was
 * found out stands in the report, with which a run goes on where the last one ended.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { stripTypeScriptTypes } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { reachableFrom } from './imports.ts';
import { mutate, PRELUDE, type Mutant } from './mutants.ts';
import type { Order, Outcome } from './runner.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CACHE = join(ROOT, '.cache/mutate');

/** The files that decide who gets what. */
const RULES = [
  'src/enrollment/*.ts',
  'src/auth/*.ts',
  'src/auth/{mtls,otp}/*.ts',
  'src/cmc/*.ts',
  'src/ca/{profile,label-boundary,client-issuers,name-templates,requested-extensions}.ts',
  'src/pki/x509/subject-names.ts',
];

const USAGE = `Usage: scripts/mutate [OPTION…] [FILE…]

  FILE             files of src to change (${RULES.join(' ')})
  --minutes N      ends after that time (60)
  --again          tries the survivors again; without it, only what was not tried yet
  --built PATTERN  tests of the built server to try on what the others do not notice; may be given more than once
  --list           prints what the report has, and tries nothing
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '60' },
    again: { type: 'boolean', default: false },
    built: { type: 'string', multiple: true, default: [] },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit();
}

type Status = 'killed' | 'survived' | 'not reached';
interface Tried extends Mutant {
  status?: Status;
  /** What noticed it. */
  by?: string;
}
interface Report {
  [file: string]: { hash: string; mutants: Tried[] };
}
/** Test file → changed file → what was reached when both had this content: of each mutant the tests, '' outside of any. */
interface Reached {
  [test: string]: { time: number; files: Record<string, { key: string; mutants: Record<string, string[]> }> };
}

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const keep = (name: string, value: object): void => {
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(join(CACHE, name), JSON.stringify(value, undefined, 1));
};
function load<T extends object>(name: string, empty: T): T {
  try {
    return { ...empty, ...(JSON.parse(readFileSync(join(CACHE, name), 'utf8')) as T) };
  } catch {
    return empty;
  }
}

const report = load<Report>('report.json', {});
const reached = load<Reached>('reached.json', {});
const files = globSync(positionals.length > 0 ? positionals : RULES, { cwd: ROOT }).sort();
const until = Date.now() + Number(values.minutes) * 60_000;

// --- the tests -------------------------------------------------------------------------------------------------

class Runner {
  #child: ChildProcess | undefined;

  /** @returns undefined: it did not end in time */
  async run(order: Order, limit: number): Promise<Outcome | undefined> {
    const child = (this.#child ??= await this.#start());
    const ended = new AbortController();
    const { signal } = ended;
    const answer = once(child, 'message', { signal }) as Promise<[Outcome]>;
    const none = Promise.race([once(child, 'exit', { signal }), sleep(limit, undefined, { signal })]);
    child.send(order);
    const outcome = await Promise.race([answer.then(([one]) => one), none.then(() => undefined)]);
    ended.abort();
    await Promise.allSettled([answer, none]);
    if (outcome === undefined) this.end();
    return outcome;
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(join(import.meta.dirname, 'runner.ts'), {
      cwd: ROOT,
      // A group of its own, to be ended as one.
      detached: true,
      env: { ...process.env, ESTUARY_MUTANTS_OF: files.join(), CI: '', ...this.#env },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    await once(child, 'message');
    return child;
  }

  readonly #env: Readonly<Record<string, string>>;
  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  end(): void {
    const pid = this.#child?.pid;
    this.#child = undefined;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

const BUILT = join(CACHE, 'built');

function buildMutants(): void {
  rmSync(BUILT, { recursive: true, force: true });
  for (const file of files) {
    const code = stripTypeScriptTypes(PRELUDE + mutate(file, read(file)).text).replace(
      /(from\s+'\.[^']*)\.ts'/g,
      "$1.js'",
    );
    const to = join(BUILT, relative('src', file).replace(/\.ts$/, '.js'));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, code);
  }
}

const SLOW = /^test\/(conformance|interop|faults|dogtag|fuzz)\/|\.slow\.test\.ts$/;
/** Where the tests of a rule are, when it is not tested from outside. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  'src/enrollment': ['test/{enrollment,ca,http/est,publication}/**', 'test/http/admin/{check,requests,approvals}*'],
  'src/auth': [
    'test/{auth,enrollment,http/est}/**',
    'test/http/admin/{roles,access,session,lockouts,listener,approvals,otp,otp-bulk}*',
  ],
  'src/cmc': ['test/{cmc,enrollment}/**'],
  'src/ca': ['test/{ca,enrollment,config/rules}/**'],
  'src/pki': ['test/{pki,ca,enrollment}/**'],
};
const here = Object.entries(TESTS)
  .filter(([folder]) => files.some((file) => file.startsWith(folder)))
  .flatMap(([, patterns]) => globSync(patterns, { cwd: ROOT }))
  .filter((file, n, all) => file.endsWith('.test.ts') && !SLOW.test(file) && all.indexOf(file) === n)
  .sort();
const outside = globSync(values.built, { cwd: ROOT });

/** Which of the files a test can reach in its process; of the built server all. */
function reachable(test: string): readonly string[] {
  if (outside.includes(test)) return files;
  const all = reachableFrom(join(ROOT, test));
  return files.filter((file) => all.has(join(ROOT, file)));
}

const keyOf = (test: string, file: string): string => sha1(read(test) + read(file));

async function findReached(tests: readonly string[], runner: Runner): Promise<void> {
  const stale = tests.filter((test) =>
    reachable(test).some((file) => reached[test]?.files[file]?.key !== keyOf(test, file)),
  );
  for (const [n, test] of stale.entries()) {
    if (Date.now() > until) return;
    const folder = join(CACHE, 'lists');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const outcome = await runner.run({ folder, files: [{ file: join(ROOT, test) }] }, 600_000);
    const failed = outcome === undefined ? ['no end'] : outcome.failed;
    const time = outcome?.times[join(ROOT, test)] ?? 0;
    console.log(`${n + 1}/${stale.length} ${test}: ${Math.round(time)} ms ${failed.join(' ')}`);
    const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
    const found: Reached[string] = { time, files: {} };
    for (const file of reachable(test)) found.files[file] = { key: keyOf(test, file), mutants: {} };
    // What fails without a mutant proves nothing with one.
    for (const line of failed.length > 0 ? [] : lines) {
      const [id = '', name = ''] = line.split('\t');
      const of = found.files[id.split('#')[0] ?? ''];
      if (of !== undefined) (of.mutants[id] ??= []).push(name);
    }
    reached[test] = found;
    keep('reached.json', reached);
  }
}

/** The tests that reach a mutant, the fast ones first. */
function testsOf(mutant: Mutant, file: string, among: readonly string[]) {
  const mirror = file.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts');
  return among
    .flatMap((test) => {
      const { time = 0, files: of = {} } = reached[test] ?? {};
      const names = of[file]?.mutants[mutant.id];
      return names === undefined ? [] : [{ test, names, time: test === mirror ? 0 : time }];
    })
    .sort((a, b) => a.time - b.time);
}

async function tryOn(mutant: Tried, file: string, among: readonly string[], runner: Runner): Promise<Status> {
  const all = testsOf(mutant, file, among);
  for (const part of [all.slice(0, 1), all.slice(1, 4), all.slice(4)]) {
    if (part.length === 0) continue;
    const time = part.reduce((sum, one) => sum + (reached[one.test]?.time ?? 0), 0);
    const outcome = await runner.run(
      {
        mutant: mutant.id,
        // What is reached outside of any test is so in all of them.
        files: part.map(({ test, names }) => ({
          file: join(ROOT, test),
          tests: names.includes('') ? undefined : names,
        })),
      },
      60_000 + 5 * time,
    );
    const by = outcome === undefined ? 'no end' : outcome.failed[0];
    if (by === undefined) continue;
    mutant.by = by;
    return 'killed';
  }
  return all.length === 0 ? 'not reached' : 'survived';
}

// --- the run ---------------------------------------------------------------------------------------------------

function mutantsOf(file: string): Tried[] {
  const text = read(file);
  const known = report[file];
  if (known?.hash !== sha1(text)) report[file] = { hash: sha1(text), mutants: [...mutate(file, text).mutants] };
  return report[file]?.mutants ?? [];
}

async function round(among: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const runner = new Runner(env);
  try {
    await findReached(
      among.filter((test) => reachable(test).length > 0),
      runner,
    );
    for (const file of files)
      for (const mutant of mutantsOf(file)) {
        if (Date.now() > until) return;
        if (mutant.status === 'killed' || (mutant.status !== undefined && !wanted.has(mutant.id))) continue;
        const status = await tryOn(mutant, file, among, runner);
        wanted.add(mutant.id);
        mutant.status = status === 'not reached' ? (mutant.status ?? status) : status;
        if (mutant.status !== 'killed') console.log(inWords(file, mutant));
        keep('report.json', report);
      }
  } finally {
    runner.end();
  }
}

/** Of those that were tried before, what is tried again. */
const wanted = new Set<string>();

const inWords = (file: string, { line, original, replacement, status }: Tried): string =>
  `${file}:${line} ${status}: ${original} → ${replacement === '' ? '(nothing)' : replacement}`;

function summary(): void {
  let [all, killed] = [0, 0];
  for (const file of files) {
    const mutants = mutantsOf(file).filter(({ status }) => status !== undefined);
    const dead = mutants.filter(({ status }) => status === 'killed');
    [all, killed] = [all + mutants.length, killed + dead.length];
    console.log(`${file}: ${dead.length} of ${mutants.length} (${mutantsOf(file).length})`);
    if (values.list)
      for (const mutant of mutants) if (mutant.status !== 'killed') console.log(`  ${inWords(file, mutant)}`);
  }
  console.log(`${killed} of ${all} were noticed, ${((killed / all) * 100).toFixed(1)} %`);
}

if (!values.list) {
  setPriority(10);
  if (values.again)
    for (const file of files) for (const { id, status } of mutantsOf(file)) if (status !== 'killed') wanted.add(id);
  const isToTry = (mutant: Tried): boolean => mutant.status === undefined || wanted.has(mutant.id);
  if (files.some((file) => mutantsOf(file).some(isToTry))) await round(here, {});
  if (outside.length > 0) {
    for (const file of files) for (const { id, status } of mutantsOf(file)) if (status !== 'killed') wanted.add(id);
    buildMutants();
    const switches = `--import=${join(import.meta.dirname, 'switch.ts')}`;
    await round(outside, { NODE_OPTIONS: switches, ESTUARY_MUTANTS_BUILT: BUILT });
  }
}
summary();
