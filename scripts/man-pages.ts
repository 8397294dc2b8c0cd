/** Writes the manual page estuary(1), made of the commands' own help, into a folder: `node scripts/man-pages.ts FOLDER`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { manualPage } from './lib/manual-page.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('usage: node scripts/man-pages.ts FOLDER\n');
  process.exitCode = 1;
} else {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'estuary.1'), await manualPage());
}
