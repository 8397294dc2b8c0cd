/** Takes pictures of the console; scripts/console-pictures describes the options. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PAGES } from '../../../test/console/pages.ts';
import { startBrowser, Window } from '../../../test/console/browser.ts';
import { firstItem, type World } from '../../../test/console/world.ts';
import { ROOT } from '../../../test/support/root.ts';
import { filledWorld } from './filled-world.ts';
import { takePicture } from './picture.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(ROOT, '.cache', 'console-pictures') },
    certificates: { type: 'string', multiple: true, default: ['0', '50', '100000'] },
    width: { type: 'string', multiple: true, default: ['390', '1280', '1920'] },
    theme: { type: 'string', multiple: true, default: ['light', 'dark'] },
    page: { type: 'string', multiple: true },
  },
});

const HEIGHTS: Readonly<Record<string, number>> = { 390: 844, 1280: 800, 1920: 1080 };

async function pagesOf(world: World, isEmpty: boolean): Promise<readonly { name: string; hash: string }[]> {
  const all = PAGES.filter(({ name }) => !isEmpty || name !== 'device');
  if (isEmpty) return all;
  const certificate = await firstItem(world, '/admin/certificates?subject=press-1&status=valid');
  const request = await firstItem(world, '/admin/requests?status=pending&requester=press-1');
  return [
    ...all,
    { name: 'certificate', hash: `certificates/${certificate('serial')}?ca=${certificate('ca')}` },
    { name: 'request', hash: `requests/${request('id')}` },
    {
      name: 'certificates-filtered',
      hash: 'certificates?subject=pr&status=valid&requester=CN%3Dpress-1&issued_after=2025-01-01T00:00:00Z',
    },
  ];
}

const browser = await startBrowser();
for (const certificates of values.certificates) {
  const world = await filledWorld(Number(certificates));
  const pages = await pagesOf(world, certificates === '0');
  const wanted = pages.filter(({ name }) => values.page === undefined || values.page.includes(name));
  for (const theme of values.theme)
    for (const width of values.width) {
      const window = await Window.open(browser, world.estuary, {
        viewport: { width: Number(width), height: HEIGHTS[width] ?? 800 },
        colorScheme: theme === 'dark' ? 'dark' : 'light',
      });
      const folder = join(values.out, `${certificates}-${width}-${theme}`);
      await window.page.goto('/');
      await window.page.getByLabel('Administrator’s token').waitFor();
      if (values.page === undefined) await takePicture(window.page, folder, 'sign-in');
      await window.signIn(world.tokens.admin);
      for (const { name, hash } of wanted) {
        await window.go(hash);
        await takePicture(window.page, folder, name);
      }
      process.stdout.write(`${folder}: ${wanted.length} pages\n`);
      await window.close();
    }
  await world.estuary.stop();
}
await browser.close();
