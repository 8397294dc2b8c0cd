/** Tests on sources that have mutants in them (scripts/mutate). */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
import settings from '../../../vitest.config.ts';
import { mutate, PRELUDE } from './mutants.ts';

const root = join(import.meta.dirname, '../../..');
const targets = new Set((process.env['ESTUARY_MUTANTS_OF'] ?? '').split(','));

/** What starts the server of a test in the test's process (server.ts). */
const START = 'export async function startServer(options: StartOptions): Promise<ServerProcess> {\n';
const IN_PROCESS: Readonly<Record<string, readonly [text: string, replacement: string]>> = {
  'src/log.ts': ['?? toStandardOutput()', '?? globalThis.__logDestination ?? toStandardOutput()'],
  'test/support/server-process.ts': [
    START,
    `${START}  if (!Object.keys(options).some((name) => ['program', 'env', 'openFiles'].includes(name)))
    return (await import('../../scripts/lib/mutate/server.ts')).startInProcess(options);\n`,
  ],
};

function replaced(text: string, [from, to]: readonly [string, string]): string {
  if (!text.includes(from)) throw new Error(`scripts/lib/mutate/vitest.config.ts: the source no longer has ${from}`);
  return text.replace(from, () => to);
}

const mutants: Plugin = {
  name: 'mutants',
  enforce: 'pre',
  load(id) {
    const file = relative(root, id);
    if (targets.has(file)) return `${PRELUDE}${mutate(file, readFileSync(id, 'utf8')).text}`;
    const change = IN_PROCESS[file];
    return change === undefined ? undefined : replaced(readFileSync(id, 'utf8'), change);
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
    // One process per run; tests that need their own process get a separate run.
    isolate: false,
  },
});
