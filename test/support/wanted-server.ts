/** Where the servers of black-box tests are to run. Apart, because vitest bundles what its configuration imports. */

/** The value of `ESTUARY_TEST_SERVER` with which servers run in the test's process (in-process.ts) unless they need their own. */
export const IN_PROCESS = 'in-process';

/** With this value, those that need it run there too, and a kill is a stop: for scripts/mutate. */
export const ALWAYS_IN_PROCESS = 'always in-process';
