/** Lists the licenses of what the server is made of: `scripts/sbom | node scripts/licenses.ts`. Exit code 1 where one is not on the list of scripts/lib/licenses.ts. */
import { text } from 'node:stream/consumers';
import { componentsOf, refused, report } from './lib/licenses.ts';
import { endWithUsage } from './lib/usage.ts';

if (process.argv.length > 2) endWithUsage('scripts/sbom | node scripts/licenses.ts');
const components = componentsOf(JSON.parse(await text(process.stdin)));
process.stdout.write(report(components));
for (const { name, version, licenses } of refused(components)) {
  process.stderr.write(
    `${name} ${version}: the license ${licenses.join(', ') || 'that is not named'} is not on the list\n`,
  );
  process.exitCode = 1;
}
