/**
 * `scripts/mutate`: changes the rules one by one, and lists the changes that no test detects.
 *
 * A first run records which tests reach each change; a change is then tried on those tests only, fast ones first. The
 * report stores the results, so a run continues where the last one ended.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { reachableFrom } from './imports.ts';
import { mutate, type Mutant } from './mutants.ts';
import type { Order, Outcome, Plan } from './runner.ts';
import { typeChecker } from './types.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CACHE = join(ROOT, '.cache/mutate');

/** The files that decide who gets what. */
const RULES = [
  'src/administration/*.ts',
  'src/auth/**/*.ts',
  'src/ca/{profile,router}.ts',
  'src/ca/remote/{forwarded,issued}.ts',
  'src/cmc/*.ts',
  'src/enrollment/**/*.ts',
  'src/pki/x509/subject-names.ts',
];

const USAGE = `Usage: scripts/mutate [OPTION…] [FILE…]

  FILE             files of src to change (${RULES.join(' ')})
  --minutes N      ends after that time (60)
  --facts          tries only what the operations of the store say of themselves, on the test of that
  --decisions      tries no \`??\`, \`true\`, \`false\` and calls
  --tests PATTERN  the tests to run, in place of those for the folders; repeatable
  --list           prints what the report has, and tries nothing
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '60' },
    tests: { type: 'string', multiple: true, default: [] },
    decisions: { type: 'boolean', default: false },
    facts: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit();
}

/** `rejected`: no test fails, but the compiler rejects the changed file. */
type Status = 'killed' | 'survived' | 'not reached' | 'rejected';
interface Tried extends Mutant {
  status?: Status;
  /** The test that failed, or the compiler's error. */
  by?: string;
  compiles?: true;
  /** The test files that do not notice it → what they were. */
  passed?: Record<string, string>;
}
interface Report {
  hash: string;
  mutants: Tried[];
}
/** Of a test file: changed file → what was reached when both had this content: of each mutant the tests, '' outside of any. */
interface Reached {
  time: number;
  /** Its tests, if some of them fail without a mutant: those that pass. */
  only?: readonly string[];
  /** Which tests pass when they run alone, as far as that was needed. */
  alone: Record<string, boolean>;
  files: Record<string, { key: string; mutants: Record<string, string[]> }>;
}

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
/** A file for each source file and each test, so that several runs on different files can share the folder. */
class Kept<T extends object> {
  readonly #folder: string;
  readonly #empty: T;
  readonly #known = new Map<string, T>();
  constructor(folder: string, empty: T) {
    this.#folder = join(CACHE, folder);
    this.#empty = empty;
    mkdirSync(this.#folder, { recursive: true });
  }
  #file(name: string): string {
    return join(this.#folder, `${name.replaceAll('/', '-')}.json`);
  }
  read(name: string): T {
    try {
      return JSON.parse(readFileSync(this.#file(name), 'utf8')) as T;
    } catch {
      return structuredClone(this.#empty);
    }
  }
  get(name: string): T {
    const known = this.#known.get(name) ?? this.read(name);
    this.#known.set(name, known);
    return known;
  }
  set(name: string, value: T): void {
    this.#known.set(name, value);
    writeFileSync(this.#file(name), JSON.stringify(value, undefined, 1));
  }
}

const reports = new Kept<Report>('reports', { hash: '', mutants: [] });
const reached = new Kept<Reached>('reached', { time: 0, alone: {}, files: {} });
const rules = values.facts ? ['src/store/**/*.ts'] : RULES;
const files = globSync(positionals.length > 0 ? positionals : rules, { cwd: ROOT }).sort();
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
      // A process group, to be killed as a whole.
      detached: true,
      env: { ...process.env, ESTUARY_MUTANTS_OF: files.join(), CI: '' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    await once(child, 'message');
    return child;
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

/** What belongs to this run alone. */
const OWN = join(CACHE, `run-${process.pid}`);
process.on('exit', () => {
  rmSync(OWN, { recursive: true, force: true });
});

const SLOW = /\.slow\.test\.ts$/;
/** Where the tests of a folder's rules are. Those of the built server have it in their process here (server.ts). */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  'src/administration': [
    'test/{administration,enrollment}/**',
    'test/http/admin/{approvals,bulk-revocation,ca-revocation,certificates,check,revocation}*',
  ],
  'src/enrollment': ['test/{enrollment,ca,http/est,publication}/**', 'test/http/admin/{check,requests,approvals}*'],
  'src/auth': [
    'test/{auth,enrollment,http/est}/**',
    'test/http/admin/{roles,access,session,lockouts,listener,approvals,otp,otp-bulk}*',
  ],
  'src/cmc': [
    'test/cmc/**',
    'test/conformance/{fullcmc,fullcmc-{refused,methods,queue,settings},every-way-in}.test.ts',
  ],
  'src/ca': ['test/{ca,enrollment,config/rules}/**'],
  'src/pki': ['test/{pki,ca,enrollment}/**'],
};
const ofFolders = Object.entries(TESTS)
  .filter(([folder]) => files.some((file) => file.startsWith(folder)))
  .flatMap(([, patterns]) => patterns);
const chosen = values.facts && values.tests.length === 0 ? ['test/store/operation.test.ts'] : values.tests;
const tests = globSync(chosen.length > 0 ? chosen : ofFolders, { cwd: ROOT })
  .filter((file) => file.endsWith('.test.ts') && (chosen.length > 0 || !SLOW.test(file)))
  .sort();

const hasServer = (test: string): boolean => test.startsWith('test/conformance/');

/** Which of the files a test can reach; with a server all. */
function reachable(test: string): readonly string[] {
  if (hasServer(test)) return files;
  const all = reachableFrom(join(ROOT, test));
  return files.filter((file) => all.has(join(ROOT, file)));
}

const keyOf = (test: string, file: string): string => sha1(read(test) + read(file));

async function findReached(among: readonly string[], runner: Runner): Promise<void> {
  const stale = among.filter((test) =>
    reachable(test).some((file) => reached.get(test).files[file]?.key !== keyOf(test, file)),
  );
  for (const [n, test] of stale.entries()) {
    if (Date.now() > until) return;
    const folder = join(OWN, 'lists');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const outcome = await runner.run({ folder, files: [{ file: join(ROOT, test) }] }, 600_000);
    const { passed, failed } = outcome?.tests ?? { passed: [], failed: [] };
    const proves = outcome?.failed.every((failure) => failure.test !== undefined) ?? false;
    const time = outcome?.times[join(ROOT, test)] ?? 0;
    console.log(`${n + 1}/${stale.length} ${test}: ${Math.round(time)} ms`);
    for (const name of proves ? failed : ['all']) console.log(`  fails without a mutant: ${name}`);
    const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
    const found: Reached = { time, alone: {}, files: { ...reached.read(test).files } };
    if (failed.length > 0) found.only = passed;
    for (const file of reachable(test)) found.files[file] = { key: keyOf(test, file), mutants: {} };
    // A test that fails without a mutant proves nothing with one.
    for (const line of proves ? lines : []) {
      const [id = '', name = ''] = line.split('\t');
      const of = found.files[id.split('#')[0] ?? ''];
      if (of !== undefined && !failed.includes(name)) (of.mutants[id] ??= []).push(name);
    }
    reached.set(test, found);
  }
}

/** At first, a mutant is tried on so many tests of a file: those that reach the fewest mutants. Survivors are tried on all. */
const TESTS_AT_FIRST = 10;
const reaches = new Map<string, ReadonlyMap<string, number>>();

/** How many mutants each test of a file reaches. */
function reachesOf(test: string): ReadonlyMap<string, number> {
  let found = reaches.get(test);
  if (found === undefined) {
    const names = Object.values(reached.get(test).files).flatMap(({ mutants }) => Object.values(mutants).flat());
    found = new Map([...Map.groupBy(names, (name) => name)].map(([name, { length }]) => [name, length]));
    reaches.set(test, found);
  }
  return found;
}

function mostSpecific(test: string, names: readonly string[]): readonly string[] {
  const counts = reachesOf(test);
  return names.toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0)).slice(0, TESTS_AT_FIRST);
}

/** What a mutant passed: all tests of a file that reach it, or those it is tried on at first. */
const passKey = (test: string, file: string, isFirst: boolean): string => keyOf(test, file) + (isFirst ? ' first' : '');

/** The tests that reach a mutant and are not known to pass with it, the fast ones first. */
function testsOf(mutant: Tried, file: string, among: readonly string[] = tests, isFirst = false) {
  return among
    .flatMap((test) => {
      const { time, files: of } = reached.get(test);
      const names = of[file]?.mutants[mutant.id];
      const passed = mutant.passed?.[test];
      if (names === undefined || passed === passKey(test, file, false)) return [];
      if (!isFirst || names.length <= TESTS_AT_FIRST || names.includes('')) return [{ test, names, time, isAll: true }];
      if (passed === passKey(test, file, true)) return [];
      return [{ test, names: mostSpecific(test, names), time, isAll: false }];
    })
    .sort((a, b) => a.time - b.time);
}

const alive = (of: readonly string[] = files): { mutant: Tried; file: string }[] =>
  of.flatMap((file) =>
    mutantsOf(file).flatMap((mutant) => (isDead(mutant) || !isWanted(mutant) ? [] : [{ mutant, file }])),
  );

const isWanted = ({ kind }: Mutant): boolean =>
  values.facts ? kind === 'fact' : !values.decisions || kind === 'decision';

/** Tries on a test file all mutants of some files that its tests reach, one after the other in one process. */
async function tryTogether(test: string, runner: Runner, of: readonly string[], isFirst = false): Promise<void> {
  const before = alive().length;
  const folder = join(OWN, 'plans');
  mkdirSync(folder, { recursive: true });
  const passed = new Set<string>();
  for (;;) {
    const wanted = alive(of).flatMap(({ mutant, file }) => {
      const [found] = testsOf(mutant, file, [test], isFirst);
      // Mutants reached outside any test need a separate process.
      return found === undefined || found.names.includes('') ? [] : [{ mutant, file, ...found }];
    });
    const pairs = wanted.flatMap(({ mutant: { id }, names }) =>
      names.filter((name) => !passed.has(`${id}\t${name}`)).map((name) => [name, id] as const),
    );
    if (pairs.length === 0 || Date.now() > until) return;
    const [plan, results] = [join(folder, 'plan.json'), join(folder, 'results')];
    writeFileSync(results, '');
    const byTest = Map.groupBy(pairs, ([name]) => name);
    const order: Plan = {
      mutants: Object.fromEntries([...byTest].map(([name, all]) => [name, all.map(([, id]) => id)])),
      results,
      until,
    };
    writeFileSync(plan, JSON.stringify(order));
    const { time } = reached.get(test);
    const watch = setInterval(() => {
      if (Date.now() - statSync(results).mtimeMs > 60_000 + 10 * time) runner.end();
    }, 5000);
    const outcome = await runner.run({ plan, files: [{ file: join(ROOT, test) }] }, 86_400_000);
    clearInterval(watch);
    const lines = readFileSync(results, 'utf8')
      .split('\n')
      .map((line) => line.split('\t'));
    const find = (id: string | undefined) => wanted.find(({ mutant }) => mutant.id === id);
    for (const [what, id = '', name = ''] of lines) {
      if (what === 'passed') passed.add(`${id}\t${name}`);
      const one = find(id);
      if (what === 'killed' && one !== undefined) kill(one.mutant, `${test}: ${name}`);
    }
    const [what, id = ''] = lines.at(-2) ?? [];
    const last = find(id);
    const isStuck = outcome === undefined && what === 'begun' && last !== undefined;
    if (isStuck) kill(last.mutant, 'no end');
    for (const { mutant, file, names, isAll } of wanted)
      if (names.every((name) => passed.has(`${mutant.id}\t${name}`))) pass(mutant, file, test, !isAll);
    for (const file of new Set(wanted.map((mutant) => mutant.file))) reports.set(file, reports.get(file));
    if (isStuck) continue;
    if (alive().length < before) console.log(`${test}: ${before} → ${alive().length}`);
    return;
  }
}

const kill = (mutant: Tried, by: string): void => {
  [mutant.status, mutant.by] = ['killed', by];
};
const pass = (mutant: Tried, file: string, test: string, isFirst = false): void => {
  (mutant.passed ??= {})[test] = passKey(test, file, isFirst);
};

/** What is reached outside of any test is so in all of them. */
function toRun(test: string, names: readonly string[]): readonly string[] | undefined {
  const { only, alone } = reached.get(test);
  return names.includes('') || names.some((name) => alone[name] === false) ? only : names;
}

/** Some tests need what earlier ones leave behind: their failures prove nothing where those are left out. */
async function passesAlone(test: string, name: string, runner: Runner): Promise<boolean> {
  const { time, alone } = reached.get(test);
  const known = alone[name];
  if (known !== undefined) return known;
  const outcome = await runner.run({ files: [{ file: join(ROOT, test), tests: [name] }] }, 60_000 + 5 * time);
  const passes = outcome?.failed.length === 0;
  reached.set(test, { ...reached.get(test), alone: { ...alone, [name]: passes } });
  return passes;
}

/** Tries a mutant alone, in a process for each test file. */
async function tryAlone(mutant: Tried, file: string, runner: Runner): Promise<void> {
  const parts = testsOf(mutant, file).map((test) => ({ ...test, isWhole: false }));
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const { test, names, time, isWhole } = part;
    const { only } = reached.get(test);
    const chosen = isWhole ? only : toRun(test, names);
    const order: Order = { mutant: mutant.id, files: [{ file: join(ROOT, test), tests: chosen }] };
    const outcome = await runner.run(order, 60_000 + 5 * time);
    const [failure] = outcome === undefined ? [{ file: 'no end' }] : outcome.failed;
    const { test: name } = failure ?? {};
    if (failure === undefined) pass(mutant, file, test);
    else if (name === undefined || chosen === only || (await passesAlone(test, name, runner))) {
      kill(mutant, name === undefined ? failure.file : `${test}: ${name}`);
      return;
    }
    // With all of the file's tests.
    else parts.unshift({ ...part, isWhole: true });
  }
}

// --- the run ---------------------------------------------------------------------------------------------------

function mutantsOf(file: string): Tried[] {
  const text = read(file);
  const hash = sha1(text);
  // An earlier version of this script wrote no kinds.
  if (reports.get(file).hash !== hash || reports.get(file).mutants[0]?.kind === undefined) {
    const known = reports.get(file).hash === hash ? reports.get(file).mutants : [];
    reports.set(file, { hash, mutants: mutate(file, text).mutants.map((mutant, n) => ({ ...known[n], ...mutant })) });
  }
  return reports.get(file).mutants;
}

const isDead = ({ status }: Tried): boolean => status === 'killed' || status === 'rejected';

async function run(): Promise<void> {
  const runner = new Runner();
  try {
    await findReached(
      tests.filter((test) => reachable(test).length > 0),
      runner,
    );
    // The tests named after a file notice most of its changes.
    for (const file of files) {
      const own = file.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts');
      if (tests.includes(own)) await tryTogether(own, runner, [file]);
    }
    // The compiler is faster than the other tests. That of facts is faster than the compiler.
    if (values.facts) for (const test of tests) await tryTogether(test, runner, files);
    for (const { mutant, file } of alive()) if (Date.now() < until) rejectByTypes(file, mutant);
    const byTime = tests.toSorted((a, b) => reached.get(a).time - reached.get(b).time);
    for (const test of byTime) await tryTogether(test, runner, files, true);
    for (const test of byTime) await tryTogether(test, runner, files);
    for (const { mutant, file } of alive()) {
      if (Date.now() > until) return;
      if (reasonFor(file, mutant) !== undefined) continue;
      await tryAlone(mutant, file, runner);
      if (!isDead(mutant)) mutant.status = mutant.passed === undefined ? 'not reached' : 'survived';
      if (resultOf(file, mutant) === 'open') console.log(inWords(file, mutant));
      reports.set(file, reports.get(file));
    }
  } finally {
    runner.end();
  }
}

let types: ((file: string, text: string) => string | undefined) | undefined;

/** For the compiler: a constant does not make code unreachable, and a statement stays one. */
function asTyped(replacement: string): string {
  if (replacement === 'true' || replacement === 'false') return 'Boolean(0)';
  return replacement === '' ? ';' : `(${replacement})`;
}

/** A change that the compiler rejects cannot be made: no test has to notice it. */
function rejectByTypes(file: string, mutant: Tried): void {
  if (mutant.compiles === true) return;
  const text = read(file);
  const error = (types ??= typeChecker(ROOT))(
    join(ROOT, file),
    text.slice(0, mutant.from) + asTyped(mutant.replacement) + text.slice(mutant.to),
  );
  if (error === undefined) mutant.compiles = true;
  else [mutant.status, mutant.by] = ['rejected', error];
  reports.set(file, reports.get(file));
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

const changeOf = ({ original, replacement }: Mutant): string =>
  `${oneLine(original)} → ${replacement === '' ? '(nothing)' : oneLine(replacement)}`;

/** Survivors with their reasons: file and change → reason. A change that ends in `…` stands for all that begin so. */
function explanations(): ReadonlyMap<string, string> {
  let reason = '';
  return new Map(
    readFileSync(join(import.meta.dirname, 'explained.txt'), 'utf8')
      .split('\n')
      .flatMap((line): [string, string][] => {
        if (line.startsWith('# ')) reason = line.slice(2);
        return line === '' || line.startsWith('#') ? [] : [[line, reason]];
      }),
  );
}
const explained = explanations();

/** The explanation that a mutant has. */
function keyFor(file: string, mutant: Mutant): string | undefined {
  const change = `${file}: ${changeOf(mutant)}`;
  if (explained.has(change)) return change;
  return [...explained.keys()].find((key) => key.endsWith('…') && change.startsWith(key.slice(0, -1)));
}

const reasonFor = (file: string, mutant: Mutant): string | undefined => explained.get(keyFor(file, mutant) ?? '');

const inWords = (file: string, mutant: Tried): string =>
  `${file}:${mutant.line} ${mutant.status ?? 'survived'} (${mutant.kind}): ${changeOf(mutant)}`;

type Result = 'killed' | 'rejected' | 'explained' | 'open' | 'not run';
const RESULTS: readonly Result[] = ['killed', 'rejected', 'explained', 'open', 'not run'];

interface Counted extends Pick<Mutant, 'kind'> {
  readonly result: Result;
}

function resultOf(file: string, mutant: Tried): Result {
  if (mutant.status === 'killed' || mutant.status === 'rejected') return mutant.status;
  if (reasonFor(file, mutant) !== undefined) return 'explained';
  return mutant.status === undefined && mutant.passed === undefined ? 'not run' : 'open';
}

/** A row of the table in docs/internals/testing.md. */
function row(name: string, all: readonly Counted[]): string {
  const decisions = all.filter(({ kind }) => kind === 'decision');
  const count = (among: readonly Counted[], wanted: Result): number =>
    among.filter(({ result }) => result === wanted).length;
  const counts = [
    ...[all.length, ...RESULTS.map((wanted) => count(all, wanted))],
    ...[decisions.length, ...RESULTS.slice(2).map((wanted) => count(decisions, wanted))],
  ];
  return `| ${[name, ...counts].join(' | ')} |`;
}

function summary(): void {
  const head = ['File', 'Mutants', ...RESULTS, 'decisions', ...RESULTS.slice(2)];
  console.log(`| ${head.join(' | ')} |\n|---|${'--:|'.repeat(head.length - 1)}`);
  const all = files
    .map((file) => ({ file, mutants: mutantsOf(file).filter((mutant) => !values.facts || isWanted(mutant)) }))
    .filter(({ mutants }) => mutants.length > 0);
  const results = ({ file, mutants }: (typeof all)[number]): Counted[] =>
    mutants.map((mutant) => ({ kind: mutant.kind, result: resultOf(file, mutant) }));
  for (const one of all) console.log(row(`\`${one.file}\``, results(one)));
  console.log(row('all', all.flatMap(results)));
  if (!values.list) return;
  const reasons: string[] = [];
  for (const { file, mutants } of all)
    for (const mutant of mutants) {
      const result = resultOf(file, mutant);
      if (result === 'open') console.log(inWords(file, mutant));
      if (result === 'explained') reasons.push(reasonFor(file, mutant) ?? '');
    }
  for (const [reason, { length }] of Map.groupBy(reasons, (reason) => reason)) console.log(`${length}: ${reason}`);
  const survivors = all.flatMap(({ file, mutants }) =>
    mutants.filter((mutant) => !isDead(mutant)).map((mutant) => keyFor(file, mutant)),
  );
  for (const key of explained.keys())
    if (files.some((file) => key.startsWith(`${file}: `)) && !survivors.includes(key))
      console.log(`no longer survives: ${key}`);
}

if (!values.list) {
  setPriority(10);
  await run();
}
summary();
