/** Writes the manual pages, made of the tables of commands, into a folder: `node scripts/man-pages.ts FOLDER`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { manualPages } from '../src/main/commands/help.ts';
import { COMMANDS, NOTES } from '../src/main/commands/table.ts';
import { VERSION } from '../src/version.ts';
import { endWithUsage } from './lib/usage.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined || folder.startsWith('-')) endWithUsage('node scripts/man-pages.ts FOLDER');
const summary = 'EST (RFC 7030) certificate enrollment server, its administration and its client';
const pages = await manualPages({ name: 'estuary', summary, version: VERSION, commands: COMMANDS, notes: NOTES });
await mkdir(folder, { recursive: true });
for (const [file, text] of pages) await writeFile(join(folder, file), text);
