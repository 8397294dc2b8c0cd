import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import FileOrder, { workersFor } from './test/support/file-order.ts';
import { IN_PROCESS } from './test/support/wanted-server.ts';
import { startedModules } from './test/support/started-modules.ts';

// Threads and child processes run from the TypeScript source: without a cache each of them strips the types anew, which
// is more than half of the CPU time of the store's tests.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules', '.cache', 'node-compile');

const MEMORY = '/dev/shm';

/** Whether there is a file system in memory with room for the tests' stores, from which programs can be started. */
function memoryServes(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === MEMORY);
    return bavail * bsize >= 4 * 2 ** 30 && mount !== undefined && !mount.split(' ')[3]?.split(',').includes('noexec');
  } catch {
    return false;
  }
}

// Each commit of a store waits for the disk. No test can tell a disk from memory, but half of the tests' time is such waits.
if (process.env['TMPDIR'] === undefined && memoryServes()) process.env['TMPDIR'] = MEMORY;

/**
 * Tests of functions, and of parts put together in the test's process. Their files share processes, which spares each of them a start
 * and the import of the sources (a third of a second of CPU and more): they may leave no module, global or environment changed. Those that
 * need a process of their own are left out.
 */
const SHARED =
  'test/{audit,auth,ca,client,cmc,config,enrollment,http,pki,publication,store}/**/!(*.slow|spnego-child|verified-signatures).test.ts';

/**
 * What a whole server does for clients, with the server in the process of its tests. These files share processes too, so they leave
 * no environment changed, and wait for no program that asks the server with `spawnSync`. Files about the process are `*.slow.test.ts`:
 * a kill, memory, sockets, tokens in the environment, nodes. For one such test in a file, its server is `built`.
 */
const SERVED = 'test/conformance/!(*.slow).test.ts';

/** What `scripts/test --fast` leaves out; docs/internals/testing.md says why. */
const SLOW = ['test/{conformance,interop,faults}/**/*.test.ts', 'test/**/*.slow.test.ts'];
const DOGTAG = 'test/dogtag/**/*.test.ts';

/**
 * What is run once more with the servers' stores in PostgreSQL each time: the core of what a store has to do for a client. All of conformance and
 * faults is run there nightly (docs/internals/testing.md).
 */
const ON_POSTGRES = [
  'test/conformance/{admin-roles,enrollment,fullcmc,otp-lockout,revocation,who-gets-what}.test.ts',
  'test/faults/second-start.test.ts',
];

export default defineConfig({
  plugins: [startedModules],
  test: {
    // Bounds for a hang, not expectations: on a busy machine, starting a server alone takes seconds.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    globalSetup: './test/support/shared-by-run.ts',
    setupFiles: ['./test/support/metadata.ts', './test/support/file-cpu.ts'],
    reporters: ['default', './test/support/run-report.ts', './test/support/run-progress.ts'],
    maxWorkers: workersFor(availableParallelism(), Math.min(totalmem(), process.constrainedMemory() || Infinity)),
    sequence: { sequencer: FileOrder },
    projects: [
      { extends: true, test: { name: 'shared', include: [SHARED], isolate: false } },
      { extends: true, test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: [SHARED, DOGTAG, ...SLOW] } },
      { extends: true, test: { name: 'slow', include: SLOW, exclude: [SERVED] } },
      {
        extends: true,
        test: { name: 'served', include: [SERVED], isolate: false, env: { ESTUARY_TEST_SERVER: IN_PROCESS } },
      },
      { extends: true, test: { name: 'dogtag', include: [DOGTAG], setupFiles: './test/support/dogtag-started.ts' } },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ON_POSTGRES,
          isolate: false,
          env: { ESTUARY_TEST_STORE: 'postgres', ESTUARY_TEST_SERVER: IN_PROCESS },
        },
      },
    ],
  },
});
