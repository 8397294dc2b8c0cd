/** `write` makes api/admin.d.ts of the admin API's OpenAPI description; `check` fails when it is not what that says. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { adminTypes } from './lib/admin-description.ts';
import { generatorAction } from './lib/usage.ts';

const FILE = join(import.meta.dirname, '..', 'api', 'admin.d.ts');

if (generatorAction('admin-types.ts') === 'write') await writeFile(FILE, await adminTypes());
else if ((await readFile(FILE, 'utf8').catch(() => '')) !== (await adminTypes())) {
  process.stderr.write('api/admin.d.ts is stale: run "npm run docs:api" and commit it\n');
  process.exitCode = 1;
}
