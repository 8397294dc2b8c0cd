/** Makes api/admin.d.ts, types of the admin API for the console, the tests and clients, of its OpenAPI description. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { adminTypes } from './lib/admin-description.ts';
import { endWithUsage } from './lib/usage.ts';

const FILE = join(import.meta.dirname, '..', 'api', 'admin.d.ts');

if (process.argv.length > 2) endWithUsage('node scripts/admin-types.ts');
const types = await adminTypes();
await mkdir(dirname(FILE), { recursive: true });
// Others may be reading it.
if ((await readFile(FILE, 'utf8').catch(() => '')) !== types) await writeFile(FILE, types);
