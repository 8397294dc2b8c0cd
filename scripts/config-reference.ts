/** `write` renders docs/configuration.md from the schema; `check` fails when the page is not what the schema says. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { configReference } from './lib/config-reference.ts';

const PAGE = join(import.meta.dirname, '..', 'docs', 'configuration.md');

const [action] = process.argv.slice(2);
if (action === 'write') await writeFile(PAGE, configReference());
else if (action !== 'check') {
  process.stderr.write('usage: node scripts/config-reference.ts write|check\n');
  process.exitCode = 1;
} else if ((await readFile(PAGE, 'utf8').catch(() => '')) !== configReference()) {
  process.stderr.write('docs/configuration.md is stale: run "npm run docs:config" and commit it\n');
  process.exitCode = 1;
}
