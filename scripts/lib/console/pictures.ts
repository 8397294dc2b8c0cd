/** Takes pictures of the console; scripts/console-pictures describes the options. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startBrowser, Window } from '../../../test/console/browser.ts';
import { PAGES } from '../../../test/console/pages.ts';
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
    docs: { type: 'boolean', default: false },
  },
});

const HEIGHTS: Readonly<Record<string, number>> = { 390: 844, 1280: 800, 1920: 1080 };
const browser = await startBrowser();

interface PicturedPage {
  readonly name: string;
  readonly hash: string;
}

async function pagesOf(world: World, isEmpty: boolean): Promise<readonly PicturedPage[]> {
  if (isEmpty) return PAGES.filter(({ name }) => name !== 'device');
  const certificate = await firstItem(world, '/admin/certificates?requester=press-1&status=valid');
  const request = await firstItem(world, '/admin/requests?status=pending&requester=press-1');
  return [
    ...PAGES,
    { name: 'certificate', hash: `certificates/${certificate('serial')}?ca=${certificate('ca')}` },
    { name: 'request', hash: `requests/${request('id')}` },
    {
      name: 'certificates-filtered',
      hash: 'certificates?subject=press&status=valid&issued_after=2026-01-01T00:00:00Z',
    },
  ];
}

function open(world: World, width: string, theme: string): Promise<Window> {
  return Window.open(browser, world.estuary, {
    viewport: { width: Number(width), height: HEIGHTS[width] ?? 800 },
    colorScheme: theme === 'dark' ? 'dark' : 'light',
  });
}

/** @param rename of the file; undefined: no picture */
async function take(
  window: Window,
  token: string,
  pages: readonly PicturedPage[],
  folder: string,
  rename = (name: string): string | undefined => name,
): Promise<void> {
  await window.page.goto('/');
  await window.page.getByLabel('Administrator’s token').waitFor();
  await takePicture(window.page, folder, rename('sign-in'));
  await window.signIn(token);
  for (const { name, hash } of pages.filter((page) => rename(page.name) !== undefined)) {
    await window.go(hash);
    await window.page.locator('.live.on').waitFor({ state: 'attached' });
    await takePicture(window.page, folder, rename(name));
  }
  await window.close();
}

/** The steps of the tour, with the name that they end with. */
async function tour(world: World, folder: string): Promise<void> {
  const window = await open(world, '1280', 'light');
  const { page } = window;
  await window.signIn(world.tokens.ra);
  await window.go('tokens/new');
  await page.getByLabel('Client ID').fill('kiln-3');
  await takePicture(page, folder, 'tour-1-new-token');
  await page.keyboard.press('Enter');
  await page.getByRole('img', { name: 'QR code with the token of kiln-3' }).waitFor();
  await takePicture(page, folder, 'tour-2-token');
  const certificate = await firstItem(world, '/admin/certificates?requester=robot-3&status=valid');
  await window.go(`certificates/${certificate('serial')}?ca=${certificate('ca')}`);
  await takePicture(page, folder, 'tour-3-certificate');
  await page.getByRole('button', { name: 'Revoke …' }).click();
  await takePicture(page, folder, 'tour-4-revoke');
  await page.getByRole('button', { name: 'Revoke the certificate' }).click();
  await page.locator('.heading .badge', { hasText: 'revoked' }).waitFor();
  await takePicture(page, folder, 'tour-5-revoked');
  await window.close();
}

async function documents(): Promise<void> {
  const folder = join(ROOT, 'docs', 'console');
  const world = await filledWorld(50);
  const pages = await pagesOf(world, false);
  const shot = async (width: string, theme: string, rename: (name: string) => string | undefined): Promise<void> =>
    take(await open(world, width, theme), world.tokens.admin, pages, folder, rename);
  const only =
    (suffix: string, ...names: readonly string[]) =>
    (name: string) =>
      names.includes(name) ? `${name}-${suffix}` : undefined;
  await shot('1280', 'light', (name) => (name === 'certificates-filtered' ? undefined : name));
  await shot('1280', 'dark', only('dark', 'overview', 'certificates'));
  await shot('390', 'light', only('phone', 'overview', 'certificates'));
  await shot('1920', 'dark', only('wide', 'overview'));
  await tour(world, folder);
  await world.estuary.stop();
}

async function everything(): Promise<void> {
  for (const certificates of values.certificates) {
    const world = await filledWorld(Number(certificates));
    const pages = await pagesOf(world, certificates === '0');
    const rename = (name: string) => (values.page?.includes(name) === false ? undefined : name);
    for (const theme of values.theme)
      for (const width of values.width) {
        const folder = join(values.out, `${certificates}-${width}-${theme}`);
        await take(await open(world, width, theme), world.tokens.admin, pages, folder, rename);
        process.stdout.write(`${folder}\n`);
      }
    await world.estuary.stop();
  }
}

await (values.docs ? documents() : everything());
await browser.close();
