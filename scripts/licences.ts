/** Lists the licences of what the server is made of: `scripts/sbom | node scripts/licences.ts`. Exit code 1 where one is not on the list of scripts/lib/licences.ts. */
import { text } from 'node:stream/consumers';
import { componentsOf, refused, report } from './lib/licences.ts';
import { endWithUsage } from './lib/usage.ts';

if (process.argv.length > 2) endWithUsage('scripts/sbom | node scripts/licences.ts');
const components = componentsOf(JSON.parse(await text(process.stdin)));
process.stdout.write(report(components));
for (const { name, version, licences } of refused(components)) {
  process.stderr.write(
    `${name} ${version}: the licence ${licences.join(', ') || 'that is not named'} is not on the list\n`,
  );
  process.exitCode = 1;
}
