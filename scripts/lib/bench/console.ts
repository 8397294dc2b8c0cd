/**
 * The time from a link to a page that shows its records and takes input, in a new window without a cache, and the size
 * of the scripts. scripts/bench-console describes the options.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startBrowser, Window } from '../../../test/console/browser.ts';
import { ROOT } from '../../../test/support/root.ts';
import { filledWorld } from '../console/filled-world.ts';

const { values } = parseArgs({
  options: {
    certificates: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '10' },
  },
});

/** What has to be there before a page counts as interactive. */
const PAGES: readonly (readonly [name: string, hash: string, ready: string])[] = [
  ['overview', '', '.tile .big'],
  ['certificates', 'certificates', 'tbody tr'],
  ['certificates, by a part of the subject', 'certificates?subject=press-10', 'tbody tr'],
  ['devices', 'devices', 'tbody tr'],
  ['audit', 'audit', 'tbody tr'],
];

const assets = join(ROOT, 'dist/console/assets');
const scripts = readdirSync(assets).filter((name) => name.endsWith('.js.br'));
const bytes = scripts.reduce((sum, name) => sum + statSync(join(assets, name)).size, 0);
process.stdout.write(`scripts, compressed${' '.repeat(33)}${(bytes / 1000).toFixed(1)} kB\n`);

const world = await filledWorld(Number(values.certificates));
const browser = await startBrowser();
const first = await Window.open(browser, world.estuary);
await first.signIn(world.tokens.admin);
const cookies = await first.context.cookies();
await first.close();
for (const [name, hash, ready] of PAGES) {
  const took: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const window = await Window.open(browser, world.estuary);
    await window.context.addCookies(cookies);
    const since = performance.now();
    await window.page.goto(`/#/${hash}`, { waitUntil: 'commit' });
    await window.page.locator(ready).first().waitFor();
    // A task after the last long one: the page takes input.
    await window.page.evaluate('new Promise((done) => requestIdleCallback(done))');
    took.push(performance.now() - since);
    await window.close();
  }
  took.sort((a, b) => a - b);
  const [median = 0, most = 0] = [took[Math.floor(took.length / 2)], took.at(-1)];
  process.stdout.write(`${name.padEnd(52)}${median.toFixed(0)} ms, at most ${most.toFixed(0)} ms\n`);
}
await browser.close();
await world.estuary.stop();
