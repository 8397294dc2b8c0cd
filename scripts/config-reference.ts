/** `write` renders the references of both configurations from their schemas; `check` fails when a page is not what the schema says. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { clientConfigReference } from './lib/client-config-reference.ts';
import { configReference } from './lib/config-reference.ts';
import { generatorAction } from './lib/usage.ts';

const PAGES = [
  ['configuration.md', configReference],
  ['client-configuration.md', clientConfigReference],
] as const;

const action = generatorAction('config-reference.ts');
for (const [name, render] of PAGES) {
  const page = join(import.meta.dirname, '..', 'docs/reference', name);
  if (action === 'write') await writeFile(page, render());
  else if ((await readFile(page, 'utf8').catch(() => '')) !== render()) {
    process.stderr.write(`docs/reference/${name} is stale: run "npm run docs:config" and commit it\n`);
    process.exitCode = 1;
  }
}
