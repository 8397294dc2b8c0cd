/** Each page of the console, as each role, in both color schemes. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { itemsOf } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { accessibilityProblems, startBrowser, Window } from './browser.ts';
import { PAGES } from './pages.ts';
import { firstItem, makeWorld, ROLES, settle, type World } from './world.ts';

describe.skipIf(!requires('chromium'))('the console', () => {
  let world: World;
  let browser: Browser;
  beforeAll(async () => {
    world = await makeWorld();
    [browser] = await Promise.all([startBrowser(), settle(world)]);
  });
  afterAll(async () => {
    await browser.close();
    await world.estuary.stop();
  });

  describe.each(['light', 'dark'] as const)('in %s colors', (colorScheme) => {
    let window: Window;
    /** Both have the same elements, so that only the colors are looked at again. */
    const problems = (): Promise<string[]> =>
      accessibilityProblems(window.page, colorScheme === 'light' ? undefined : ['color-contrast']);
    beforeAll(async () => {
      window = await Window.open(browser, world.estuary, { colorScheme });
    });
    afterAll(() => window.close());

    test('axe finds nothing on the page for signing in', async () => {
      await window.page.goto('/');
      await window.page.getByLabel('Administrator’s token').waitFor();
      expect(await problems()).toEqual([]);
      await window.signIn(world.tokens.admin);
    });

    test.each(PAGES)('axe finds nothing on the page $name', async ({ hash, title }) => {
      await window.go(hash);
      expect(await window.page.locator('main h1').textContent()).toBe(title);
      expect(await problems()).toEqual([]);
    });

    test('axe finds nothing on a certificate, a request, and where they are revoked and approved', async () => {
      const certificate = await firstItem(world, '/admin/certificates?status=valid');
      await window.go(`certificates/${certificate('serial')}?ca=${certificate('ca')}`);
      expect(await problems()).toEqual([]);
      await window.page.getByRole('button', { name: 'Revoke …' }).click();
      expect(await problems()).toEqual([]);
      await window.page.getByRole('button', { name: 'Cancel' }).click();
      const request = await firstItem(world, '/admin/requests?status=pending&requester=press-1');
      await window.go(`requests/${request('id')}`);
      expect(await problems()).toEqual([]);
      await window.page.getByRole('button', { name: 'Approve …' }).click();
      expect(await problems()).toEqual([]);
      await window.page.getByRole('button', { name: 'Cancel' }).click();
    });

    test('axe finds nothing on a page that is empty, unknown, or has failed', async () => {
      for (const hash of ['certificates?subject=nobody', 'nowhere', 'certificates/00', 'requests?cursor=x']) {
        await window.go(hash);
        expect(await problems(), hash).toEqual([]);
      }
    });

    test('nothing went wrong on the way, nor against the content security policy', () => {
      expect(window.problems).toEqual([]);
    });
  });

  test('on a phone nothing is wider than the screen, and the menu leads everywhere', async () => {
    const window = await Window.open(browser, world.estuary, { viewport: { width: 360, height: 740 }, hasTouch: true });
    await window.signIn(world.tokens.admin);
    for (const { name, hash } of PAGES) {
      await window.go(hash);
      const width = await window.page.evaluate('document.documentElement.scrollWidth');
      expect(width, name).toBe(360);
    }
    await window.page.locator('label.menu').click();
    await window.page.getByRole('link', { name: 'Requests' }).click();
    await window.settled();
    expect(await window.page.locator('main h1').textContent()).toBe('Requests');
    await window.close();
  });

  describe.each([...ROLES, 'nobody'] as const)('with the role %s', (role) => {
    let window: Window;
    const may = PAGES.filter(({ roles }) => roles.some((permitted) => permitted === role));
    beforeAll(async () => {
      window = await Window.open(browser, world.estuary);
      await window.signIn(world.tokens[role]);
    });
    afterAll(() => window.close());

    test('the navigation has the pages of the role, and a key for each', async () => {
      const links = await window.page.getByRole('navigation').getByRole('link').allInnerTexts();
      const wanted = may.filter(({ key }) => key !== undefined);
      expect(links.map((text) => text.split('\n')[0])).toEqual(wanted.map(({ title }) => title));
      for (const { title, key = '' } of wanted.toReversed()) {
        await window.goByKey(key);
        await window.page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
      }
    });

    test('the pages of the role show what they have, with one primary action, and looking at them writes nothing to the audit log', async () => {
      const calls = async () =>
        itemsOf((await world.estuary.admin('GET', '/admin/audit?type=admin.access&limit=1000')).json).length;
      const before = await calls();
      for (const { name, hash, title } of may) {
        await window.go(hash);
        expect(await window.page.locator('main h1').textContent(), name).toBe(title);
        expect(await window.page.locator('.problem').allInnerTexts(), name).toEqual([]);
        expect(await window.page.locator('main .primary').count(), name).toBeLessThan(2);
        expect(await window.page.locator('main .danger').count(), name).toBe(0);
      }
      expect(await calls()).toBe(before);
      expect(window.problems).toEqual([]);
    });

    test('other pages say that they are not for the role, and ask the API nothing', async () => {
      const asked: string[] = [];
      window.page.on('request', (request) => asked.push(new URL(request.url()).pathname));
      for (const { name, hash } of PAGES.filter((page) => !may.includes(page))) {
        await window.go(hash);
        expect(await window.page.locator('main').innerText(), name).toContain('Your role does not allow this page');
      }
      expect(
        asked.filter((path) => path.startsWith('/admin/') && path !== '/admin/session' && path !== '/admin/events'),
      ).toEqual([]);
    });
  });

  test('a page of 800 px shows fifteen certificates, one line each; the focus unfolds a row, and columns are chosen', async () => {
    const window = await Window.open(browser, world.estuary);
    await window.signIn(world.tokens.admin);
    const { page } = window;
    await window.go('certificates');
    const [head, row, inner] = await page.evaluate<number[]>(
      `[document.querySelector('thead').getBoundingClientRect().bottom, document.querySelector('tbody tr').getBoundingClientRect().height, innerHeight]`,
    );
    expect(((inner ?? 0) - (head ?? 0)) / (row ?? 1)).toBeGreaterThan(15);
    const table = page.getByRole('region', { name: 'Certificates' });
    expect(
      await page.evaluate(
        `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.table'))`,
      ),
    ).toBe(0);
    const height = () =>
      page.evaluate<number>(`document.querySelector('tbody tr:last-child').getBoundingClientRect().height`);
    const before = await height();
    // The keyboard, not the mouse, has to be what moved the focus.
    await table.focus();
    await page.keyboard.press('Shift+Tab');
    await table.getByRole('link').last().focus();
    expect(await height()).toBeGreaterThan(before);
    await page.locator('summary', { hasText: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'Serial number' }).check();
    await page.reload();
    await page.getByRole('columnheader', { name: 'Serial number' }).waitFor();
    await window.close();
  });

  test('lists are sorted by the column for which the API has an order, and leave out empty columns', async () => {
    const window = await Window.open(browser, world.estuary);
    await window.signIn(world.tokens.admin);
    const { page } = window;
    await window.go('audit');
    const numbers = async () => (await page.locator('tbody td.number').allTextContents()).map(Number);
    const newest = await numbers();
    expect(newest).toEqual(newest.toSorted((a, b) => b - a));
    await page.getByRole('columnheader', { name: 'When' }).getByRole('link').click();
    await page.locator('th[aria-sort=ascending]').waitFor();
    await window.settled();
    expect((await numbers())[0]).toBe(1);
    await window.go('devices');
    const heads = await page.locator('thead th').allTextContents();
    expect(heads.slice(0, 2)).toEqual(['Device', 'State']);
    const rows = await page.evaluate<string[][]>(
      `[...document.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))`,
    );
    for (const [n, head] of heads.entries())
      expect(
        rows.some((cells) => !['', '—'].includes(cells[n] ?? '')),
        head,
      ).toBe(true);
    await window.close();
  });

  test('all scripts together are at most 90 kB, compressed', () => {
    const assets = join(ROOT, 'dist/console/assets');
    const sizes = readdirSync(assets).map((name) => (name.endsWith('.js.br') ? statSync(join(assets, name)).size : 0));
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(90_000);
  });

  test('filters are choices on one line, with chips, and times are in the chosen zone and form', async () => {
    const window = await Window.open(browser, world.estuary);
    await window.signIn(world.tokens.admin);
    const { page } = window;
    await window.go('certificates?requester=oven-7&issued_after=2026-01-01T00:00:00Z');
    await page.getByRole('button', { name: 'Revoke …' }).waitFor();
    const tops = await page.evaluate<number[]>(
      `[...document.querySelectorAll('.filters > :is(.filter, .drop), .list-tools')].map((one) => one.getBoundingClientRect().top)`,
    );
    expect(new Set(tops).size).toBe(1);
    await page.getByTitle('Remove this filter: Issued after 2026-01-01').click();
    await page.getByLabel('CA', { exact: true }).selectOption('devices');
    await page.getByRole('link', { name: 'CN=oven-7' }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/certificates?requester=oven-7&ca=devices');
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Time zone').selectOption('Asia/Tokyo');
    await page.getByText('Date and time').click();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'Close' }).click();
    const at = new Date((await firstItem(world, '/admin/certificates?requester=oven-7'))('not_after'));
    const shown = new Date(at.getTime() + 9 * 3_600_000).toISOString().slice(0, 16).replace('T', ' ');
    await page.getByRole('cell', { name: shown, exact: true }).waitFor();
    await window.close();
  });

  test('“Live” turns off without a network, and on again with one', async () => {
    const window = await Window.open(browser, world.estuary);
    await window.signIn(world.tokens.admin);
    const live = window.page.locator('.live.on');
    await live.waitFor();
    // As the browser says it: the emulation of a lost network does not always do so.
    await window.page.evaluate("dispatchEvent(new Event('offline'))");
    await live.waitFor({ state: 'detached' });
    await window.page.evaluate("dispatchEvent(new Event('online'))");
    await live.waitFor();
    await window.close();
  });

  test('a link leads to the same state for somebody else, after signing in', async () => {
    const window = await Window.open(browser, world.estuary);
    await window.page.goto('/#/certificates?subject=oven&status=valid');
    await window.page.getByLabel('Administrator’s token').fill(world.tokens.ra);
    await window.page.keyboard.press('Enter');
    await window.page.locator('tbody tr').first().waitFor();
    expect(await window.page.getByLabel('Subject').inputValue()).toBe('oven');
    expect(await window.page.locator('tbody tr').count()).toBe(1);
    await window.close();
  });
});
