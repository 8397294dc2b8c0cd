/** Tests on sources that have mutants in them (scripts/mutate). */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
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
    // A process for each run; what needs its own process gets a run of its own.
    isolate: false,
  },
});
