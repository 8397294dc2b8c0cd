/**
 * `scripts/bench-console [--certificates N] [--times N] [--keep FOLDER]`: the console on the built server with a store of many certificates. The
 * rows are those of scripts/bench-search, of which a quarter are names of their own. Prints a line for each figure, with the machine's load,
 * and exits with 1 where the median of an answer takes more than 200 ms, or that of the first paint more than a second. Loopback only; the
 * browser runs on the same cores.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { startBrowser, Window } from '../../../test/console/browser.ts';
import { Estuary, itemsOf, section } from '../../../test/support/estuary.ts';

const HELP = `scripts/bench-console [--certificates 1000000] [--times 20] [--keep FOLDER]

  --certificates N  in the store (at most 5000000)
  --times N         that each figure is taken (at most 100)
  --keep FOLDER     keep the store there; one that is there already is filled up and measured again`;

const { values } = parseArgs({
  options: {
    certificates: { type: 'string', default: '1000000' },
    times: { type: 'string', default: '20' },
    keep: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

function wholeNumber(option: 'certificates' | 'times', limit: number): number {
  const value = Number(values[option]);
  if (Number.isInteger(value) && value >= 1 && value <= limit) return value;
  console.error(`--${option}: "${values[option]}" is not a whole number from 1 to ${limit}`);
  return process.exit(2);
}

const certificates = wholeNumber('certificates', 5_000_000);
const times = wholeNumber('times', 100);

/** Milliseconds that they may take. */
const ANSWER = 200;
const PAINT = 1000;
const DAY = 86_400_000;

const slow: string[] = [];
const say = (what: string, figure: string): void => void process.stdout.write(`${what.padEnd(64)} ${figure}\n`);

/** Takes a figure often; says its median and the worst. @param limit milliseconds, of the median */
async function figure(what: string, limit: number, take: () => Promise<number>): Promise<void> {
  const taken: number[] = [];
  for (let n = 0; n < times; n++) taken.push(await take());
  taken.sort((a, b) => a - b);
  const [median = 0, worst = 0] = [taken[Math.floor(taken.length / 2)], taken.at(-1)];
  say(what, `${median.toFixed(0)} ms, at most ${worst.toFixed(0)} ms`);
  if (median > limit) slow.push(`${what}: ${median.toFixed(0)} ms, more than ${limit}`);
}

function fill(folder: string): void {
  const script = join(import.meta.dirname, 'search.ts');
  const sizes = ['--certificates', String(certificates), '--tokens', '1000', '--devices', '1000', '--records', '1000'];
  const { status } = spawnSync(process.execPath, [script, '--fill-only', '--keep', folder, ...sizes], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the store could not be filled');
}

/** What the pages ask, each on its own connection, as `curl` would. */
async function answers(estuary: Estuary): Promise<void> {
  const { json } = await estuary.admin('GET', '/admin/certificates?limit=1&issued_after=2000-01-01T00:00:00Z');
  const [one] = itemsOf(json);
  const name = String(one?.['device']);
  const soon = new Date(Date.now() + 30 * DAY).toISOString();
  const searches: Readonly<Record<string, string>> = {
    overview: '/admin/overview',
    'activity, by the hour': '/admin/statistics?interval=hour',
    'activity, by the day': '/admin/statistics?interval=day',
    'the newest certificates': '/admin/certificates?order=desc&limit=50',
    'subject, a whole name': `/admin/certificates?order=desc&limit=50&subject=${name}`,
    'subject, a part that all have': '/admin/certificates?order=desc&limit=50&subject=device-',
    'subject, nobody’s': '/admin/certificates?order=desc&limit=50&subject=zebra',
    'other names, a part of one': `/admin/certificates?order=desc&limit=50&san=${name.slice(-6)}.fleet`,
    'serial number': `/admin/certificates?order=desc&limit=50&serial=${String(one?.['serial'])}`,
    requester: `/admin/certificates?order=desc&limit=50&requester=${name}`,
    'valid, ending within 30 days': `/admin/certificates?order=desc&limit=50&status=valid&expires_before=${soon}`,
    revoked: '/admin/certificates?order=desc&limit=50&status=revoked',
  };
  for (const [what, path] of Object.entries(searches))
    await figure(what, ANSWER, async () => {
      const since = performance.now();
      const { status } = await estuary.admin('GET', path);
      if (status !== 200) throw new Error(`${path}: ${status}`);
      return performance.now() - since;
    });
}

const FIRST_PAINT = `new Promise((tell) => new PerformanceObserver((list) => {
  const [paint] = list.getEntriesByName('first-contentful-paint');
  if (paint !== undefined) tell(paint.startTime);
}).observe({ type: 'paint', buffered: true }))`;

async function paints(estuary: Estuary, browser: Browser): Promise<void> {
  await figure('first paint, nothing in the browser’s cache', PAINT, async () => {
    const window = await Window.open(browser, estuary);
    await window.page.goto('/');
    const at = await window.page.evaluate<number>(FIRST_PAINT);
    await window.close();
    return at;
  });
  const window = await Window.open(browser, estuary);
  await window.signIn(estuary.adminToken);
  await figure('first paint, signed in', PAINT, async () => {
    await window.page.reload();
    return window.page.evaluate<number>(FIRST_PAINT);
  });
  await figure('the overview, from its link to its last number', PAINT, async () => {
    await window.page.goto('about:blank');
    const since = performance.now();
    await window.page.goto('/#/');
    await window.page.getByRole('heading', { name: 'Valid certificates' }).waitFor();
    return performance.now() - since;
  });
  await window.go('certificates');
  let round = 0;
  await figure('a search, from Enter to its rows', PAINT, async () => {
    const part = `device-${String(round++ % (certificates / 4)).padStart(7, '0')}`;
    await window.page.getByLabel('Subject').fill(part);
    const since = performance.now();
    await window.page.keyboard.press('Enter');
    await window.page.locator('tbody a', { hasText: part }).first().waitFor();
    return performance.now() - since;
  });
  await window.close();
}

const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'estuary-console-'));
try {
  say(
    'load before',
    loadavg()
      .map((load) => load.toFixed(1))
      .join(' '),
  );
  fill(folder);
  const estuary = await Estuary.start({
    configure: (config) => {
      Object.assign(section(config, 'store'), { path: join(folder, 'est.db') });
      Object.assign(section(config, 'audit'), { file: join(folder, 'audit.log') });
    },
  });
  try {
    await answers(estuary);
    const browser = await startBrowser();
    await paints(estuary, browser).finally(() => browser.close());
  } finally {
    await estuary.stop();
  }
  say(
    'load after',
    loadavg()
      .map((load) => load.toFixed(1))
      .join(' '),
  );
  for (const line of slow) say('SLOW', line);
  if (slow.length > 0) process.exitCode = 1;
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
