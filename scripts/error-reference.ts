/** `write` renders docs/reference/errors.md from the codes and errors.yaml; `check` fails when the page is not what they say. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorReference } from './lib/error-reference.ts';
import { generatorAction } from './lib/usage.ts';

const PAGE = join(import.meta.dirname, '..', 'docs/reference/errors.md');

if (generatorAction('error-reference.ts') === 'write') await writeFile(PAGE, errorReference());
else if ((await readFile(PAGE, 'utf8').catch(() => '')) !== errorReference()) {
  process.stderr.write('docs/reference/errors.md is stale: run "npm run docs:errors" and commit it\n');
  process.exitCode = 1;
}
