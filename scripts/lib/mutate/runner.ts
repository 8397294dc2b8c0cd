/** Runs tests as it is told: a child of scripts/mutate, which ends it where a mutant does not come to an end. */
import { join } from 'node:path';
import { createVitest } from 'vitest/node';

/** What to run. */
export interface Order {
  /** Of the mutant; absent: none is on. */
  readonly mutant?: string;
  /** Where reached mutants are noted. */
  readonly folder?: string;
  /** File of a plan: several mutants in one process. */
  readonly plan?: string;
  /** Test files; of each its tests by their full names, or all. */
  readonly files: readonly { readonly file: string; readonly tests?: readonly string[] | undefined }[];
}

/** What repeat.ts does. */
export interface Plan {
  /** Full name of a test → ids of mutants. */
  readonly mutants: Readonly<Record<string, readonly string[]>>;
  /** File of lines: `begun`, `killed` or `passed`, the mutant and the test, separated by tabs. */
  readonly results: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export interface Outcome {
  /** Test files that failed, each with its first test that failed; without one, it could not be loaded or set up. */
  readonly failed: readonly Failure[];
  /** Full names of the tests: without a mutant all are run, with one those up to the first failure. */
  readonly tests: Readonly<Record<'passed' | 'failed', readonly string[]>>;
  /** Milliseconds for each file. */
  readonly times: Readonly<Record<string, number>>;
}

export interface Failure {
  readonly file: string;
  readonly test?: string | undefined;
}

const vitest = await createVitest(
  { config: join(import.meta.dirname, 'vitest.config.ts'), watch: false, run: true, bail: 1 },
  { logLevel: 'silent' },
);

async function run({ mutant, folder, plan, files }: Order): Promise<Outcome> {
  set('ESTUARY_MUTANT', mutant);
  set('ESTUARY_MUTANTS_FOLDER', folder);
  set('ESTUARY_MUTANTS_REACHED', undefined);
  set('ESTUARY_MUTANTS_PLAN', plan);
  const project = vitest.getRootProject();
  const repeat = plan === undefined ? undefined : join(import.meta.dirname, 'repeat.ts');
  Object.assign(project.config, { runner: repeat });
  vitest.config.bail = project.config.bail = mutant === undefined ? 0 : 1;
  const result = await vitest.runTestSpecifications(
    files.map(({ file, tests }) =>
      project.createSpecification(file, tests === undefined ? undefined : { testNames: [...tests] }),
    ),
  );
  const { unhandledErrors } = result;
  // The others are those of earlier runs.
  const testModules = result.testModules.filter(({ moduleId }) => files.some(({ file }) => file === moduleId));
  const ran = testModules.flatMap((module) =>
    [...module.children.allTests()].filter((test) => test.result().state !== 'skipped'),
  );
  if (ran.length === 0 && testModules.every((module) => module.ok())) throw new Error('no test was run');
  const namesOf = (state: 'passed' | 'failed'): string[] =>
    testModules.flatMap(({ children }) => [...children.allTests(state)].map(({ fullName }) => fullName));
  const failed = testModules
    .filter((module) => !module.ok())
    .map((module) => {
      const [first] = [...module.children.allTests('failed')];
      return { file: module.relativeModuleId, test: first?.fullName };
    });
  return {
    failed: failed.length === 0 && unhandledErrors.length > 0 ? [{ file: 'an error outside of a test' }] : failed,
    tests: { passed: namesOf('passed'), failed: namesOf('failed') },
    times: Object.fromEntries(testModules.map((module) => [module.moduleId, module.diagnostic().duration])),
  };
}

function set(name: string, value: string | undefined): void {
  if (value === undefined) Reflect.deleteProperty(process.env, name);
  else process.env[name] = value;
}

process.on('message', (order: Order) => {
  run(order).then(
    (outcome) => process.send?.(outcome),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => void vitest.close().finally(() => process.exit()));
process.send?.('ready');
