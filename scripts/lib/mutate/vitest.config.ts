/** Tests on sources that have mutants in them (scripts/mutate). */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
import { ALWAYS_IN_PROCESS } from '../../../test/support/wanted-server.ts';
import settings from '../../../vitest.config.ts';
import { mutate, PRELUDE } from './mutants.ts';

const root = join(import.meta.dirname, '../../..');
const targets = new Set((process.env['ESTUARY_MUTANTS_OF'] ?? '').split(','));

const mutants: Plugin = {
  name: 'mutants',
  enforce: 'pre',
  load(id) {
    const file = relative(root, id);
    return targets.has(file) ? `${PRELUDE}${mutate(file, readFileSync(id, 'utf8')).text}` : undefined;
  },
};

const common = { ...settings.test };
Reflect.deleteProperty(common, 'projects');

export default defineConfig({
  root,
  plugins: [mutants],
  test: {
    ...common,
    reporters: [],
    // What it keeps is not for other mutants, nor for tests without any.
    fsModuleCache: false,
    testTimeout: 30_000,
    maxWorkers: 1,
    fileParallelism: false,
    include: ['test/**/*.test.ts'],
    setupFiles: [join(import.meta.dirname, 'setup.ts')],
    // The server of a test has the mutants, and shows which test reaches which of them.
    env: { ESTUARY_TEST_SERVER: ALWAYS_IN_PROCESS },
    // One process per run; tests that need their own process get a separate run.
    isolate: false,
  },
});
