/** Which mutant is on in this process, and which ones are reached. */
import { appendFileSync } from 'node:fs';

declare global {
  var __mutant: ((id: string) => boolean) | undefined;
  /** Where one process tries several mutants (repeat.ts). */
  var __mutantOn: string | undefined;
  /** The test that runs, where that is known. */
  var __mutantTest: string | undefined;
}

const active = process.env['ESTUARY_MUTANT'];
const seen = new Set<string>();

globalThis.__mutant ??= (id) => {
  // Read anew: each test file of a process has its own.
  const list = process.env['ESTUARY_MUTANTS_REACHED'];
  if (list === undefined) return id === (globalThis.__mutantOn ?? active);
  const line = `${id}\t${globalThis.__mutantTest ?? ''}\n`;
  if (!seen.has(list + line)) {
    seen.add(list + line);
    appendFileSync(list, line);
  }
  return false;
};
