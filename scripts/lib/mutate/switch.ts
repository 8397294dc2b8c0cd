/**
 * Which mutant is on in this process, and which ones are reached. Loaded before anything else in every process of the tests: by vitest
 * (`setup.ts`), and by `--import` in the programs that tests start, where it also puts the mutants into the built server.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

declare global {
  var __mutant: ((id: string) => boolean) | undefined;
  /** The test that runs, where that is known. */
  var __mutantTest: string | undefined;
}

const active = process.env['ESTUARY_MUTANT'];
const seen = new Set<string>();

globalThis.__mutant ??= (id) => {
  // Read anew: each test file of a process has its own.
  const list = process.env['ESTUARY_MUTANTS_REACHED'];
  if (list === undefined) return id === active;
  const line = `${id}\t${globalThis.__mutantTest ?? ''}\n`;
  if (!seen.has(list + line)) {
    seen.add(list + line);
    appendFileSync(list, line);
  }
  return false;
};

/** dist/x.js → the same with mutants. */
const built = process.env['ESTUARY_MUTANTS_BUILT'];
const DIST = new URL('../../../dist/', import.meta.url).href;

if (built !== undefined)
  registerHooks({
    load(url, context, next) {
      if (!url.startsWith(DIST)) return next(url, context);
      const file = `${built}/${fileURLToPath(url).slice(fileURLToPath(DIST).length)}`;
      if (!existsSync(file)) return next(url, context);
      return { format: 'module', source: readFileSync(file, 'utf8'), shortCircuit: true };
    },
  });
