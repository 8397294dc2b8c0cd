/**
 * A vitest reporter that ends a run with a summary for people: counts, the slowest files, what was skipped and why, and
 * for each failure the command that runs it alone. With `CI=true`, a skipped test fails the run. With
 * `ESTUARY_PROFILE=1`, the summary also shows where the time went. With `ESTUARY_FAILED_TESTS=FILE`, the file gets a line
 * for each failure.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';
import { readNotes, RUN_NOTES, type RunNote } from './run-notes.ts';
import { ABOUT_FILES } from './wanted-store.ts';

export default class RunReport implements Reporter {
  #folder = '';
  #list = '';
  #started = 0;
  #root = '';
  #failed: string | undefined;
  /** Whether the run selects tests by name. The others then do not count as skipped. */
  #filtered = false;

  onInit(vitest: Vitest): void {
    this.#folder = mkdtempSync(join(tmpdir(), 'estuary-run-'));
    this.#list = join(this.#folder, 'notes');
    writeFileSync(this.#list, '');
    // The test processes inherit it.
    process.env[RUN_NOTES] = this.#list;
    // For this run only, not for those that a test starts.
    this.#failed = process.env['ESTUARY_FAILED_TESTS'];
    Reflect.deleteProperty(process.env, 'ESTUARY_FAILED_TESTS');
    this.#started = performance.now();
    this.#root = vitest.config.root;
    this.#filtered = vitest.config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const notes = readNotes(this.#list);
    rmSync(this.#folder, { recursive: true, force: true });
    Reflect.deleteProperty(process.env, RUN_NOTES);
    const isProfile = process.env['ESTUARY_PROFILE'] === '1';
    if (modules.length > 1) print('Slowest files', slowest(modules, isProfile ? 20 : 10));
    if (isProfile) for (const kind of ['cpu', 'start', 'wait'] as const) printTimes(kind, notes);
    const skips = this.#filtered ? [] : modules.flatMap((module) => describeSkips(module, notes));
    print(
      'Skipped',
      skips.map(({ line }) => line),
    );
    const failures = [
      ...modules.flatMap(failuresOf),
      ...unhandled.map((error) => describeUnhandled(error, this.#root)),
    ];
    print(
      'Failed',
      failures.map(({ file, what, command }) => `${file}: ${what}\n      ${command}`),
    );
    console.log(this.#counts(modules, failures.length));
    const refused = process.env['CI'] === 'true' ? skips.filter(({ isWanted }) => !isWanted) : [];
    const lines = [
      ...failures.map(({ file, what, error }) => `${file}: ${what.slice(0, 120)}: ${error}\n`),
      ...refused.map(({ line }) => `skipped, although CI=true: ${line}\n`),
    ];
    if (this.#failed !== undefined) writeFileSync(this.#failed, lines.join(''));
    if (refused.length === 0) return;
    console.log('CI=true: skipped tests fail the run.\n');
    process.exitCode = 1;
  }

  #counts(modules: readonly TestModule[], failed: number): string {
    const count = (state: 'passed' | 'skipped'): number =>
      modules.reduce((sum, module) => sum + [...module.children.allTests(state)].length, 0);
    const seconds = Math.round((performance.now() - this.#started) / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    const skipped = this.#filtered ? '' : `, ${count('skipped')} skipped`;
    return `${modules.length} files in ${time}\n${count('passed')} passed, ${failed} failed${skipped}\n`;
  }
}

function print(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`${title}:\n${lines.map((line) => `  ${line}\n`).join('')}`);
}

function nameOf(module: TestModule): string {
  return module.relativeModuleId;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1).padStart(7)} s`;
}

function slowest(modules: readonly TestModule[], count: number): string[] {
  const time = (module: TestModule): number => module.diagnostic().duration + module.diagnostic().collectDuration;
  return [...modules]
    .sort((a, b) => time(b) - time(a))
    .slice(0, count)
    .map(
      (module) =>
        `${seconds(time(module))}  ${nameOf(module)}${module.project.name === '' ? '' : ` (${module.project.name})`}`,
    );
}

const TITLES = { cpu: 'CPU time of files', start: 'Started programs', wait: 'Waits' } as const;

/** Sums up the notes of one kind by what they name, the most expensive first. */
function printTimes(kind: keyof typeof TITLES, notes: readonly RunNote[]): void {
  const sums = new Map<string, { count: number; ms: number }>();
  for (const note of notes.filter((each) => each.kind === kind)) {
    const sum = sums.get(note.what) ?? { count: 0, ms: 0 };
    sums.set(note.what, { count: sum.count + 1, ms: sum.ms + note.ms });
  }
  const rows = [...sums].sort(([, a], [, b]) => b.ms - a.ms).slice(0, kind === 'cpu' ? 60 : 20);
  const all = [...sums.values()].reduce((sum, { ms }) => sum + ms, 0);
  print(
    `${TITLES[kind]} (${seconds(all).trim()} in all)`,
    rows.map(([what, { count, ms }]) => `${seconds(ms)}  ${count} times: ${what}`),
  );
}

interface Failure {
  readonly file: string;
  readonly what: string;
  /** The command that runs it alone. */
  readonly command: string;
  /** The start of its first error. */
  readonly error: string;
}

function failuresOf(module: TestModule): Failure[] {
  const file = nameOf(module);
  const command = `./scripts/test ${file}`;
  const inFile = module.errors().slice(0, 1);
  const suites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
  return [
    ...inFile.map((error) => ({ file, what: 'the file could not be run', command, error: startOf(error) })),
    ...suites.map((suite) => ({
      file,
      what: `before or after ${suite.fullName}`,
      command: `${command} -t ${namePattern(suite)}`,
      error: startOf(suite.errors()[0]),
    })),
    ...[...module.children.allTests('failed')].map((test) => ({
      file,
      what: test.fullName,
      command: `${command} -t ${namePattern(test)}`,
      error: startOf(test.result().errors?.[0]),
    })),
  ];
}

function startOf(error?: { readonly message: string }): string {
  return (error?.message ?? '').replaceAll(/\s+/g, ' ').slice(0, 160);
}

/** Describes an error outside of tests: an unhandled rejection, or a test process that ended. Any of them fails the run. */
function describeUnhandled(error: SerializedError, root: string): Failure {
  const { VITEST_TEST_PATH: path, VITEST_TEST_NAME: name, type } = error;
  const file = typeof path === 'string' ? relative(root, path) : '(unknown file)';
  const what = `${typeof type === 'string' ? type : 'Unhandled error'}${typeof name === 'string' ? ` during or after '${name}'` : ''}`;
  const stack = (error.stack ?? '').split('\n').find((line) => /^ +at (?!.*node_modules)/.test(line));
  return {
    file,
    what,
    command: `./scripts/test ${file}`,
    error: `${startOf(error)}${stack === undefined ? '' : ` (${stack.trim()})`}`,
  };
}

/** The full name of a test or suite as vitest's `-t` takes it, a regular expression, in single quotes for a shell. */
function namePattern({ fullName }: TestCase | TestSuite): string {
  const pattern = fullName.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return `'${pattern.replaceAll("'", String.raw`'\''`)}'`;
}

interface Described {
  readonly line: string;
  /** Whether the run was configured to leave these out. */
  readonly isWanted: boolean;
}

function describeSkips(module: TestModule, notes: readonly RunNote[]): Described[] {
  const skipped = [...module.children.allTests('skipped')];
  if (skipped.length === 0) return [];
  const ofFile = notes.filter(({ kind, file }) => kind === 'skip' && file === module.moduleId).map(({ what }) => what);
  const ofTests = skipped.map((test) => test.result()).map((result) => ('note' in result ? result.note : undefined));
  const reasons = [...new Set([...ofFile, ...ofTests.filter((note) => note !== undefined)])];
  const number = skipped.length === 1 ? '1 test' : `${skipped.length} tests`;
  return [
    {
      line: `${nameOf(module)} (${number}): ${reasons.length === 0 ? 'no reason given' : reasons.join('; ')}`,
      isWanted: reasons.length > 0 && reasons.every((reason) => reason === ABOUT_FILES),
    },
  ];
}
