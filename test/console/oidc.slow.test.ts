/** Signing in to the console at an OpenID provider, in a browser. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Estuary, section } from '../support/estuary.ts';
import { freePort } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { TokenIssuer } from '../support/token-issuer.ts';
import { startBrowser, Window } from './browser.ts';
import { oidcSection } from './world.ts';

const SESSION = '__Host-estuary-session';
const STATE = '__Host-estuary-oidc';

describe.skipIf(!requires('chromium'))('single sign-on', () => {
  let issuer: TokenIssuer;
  let estuary: Estuary;
  let browser: Browser;
  beforeAll(async () => {
    issuer = await TokenIssuer.start([]);
    const port = await freePort();
    const redirectUri = `https://127.0.0.1:${port}/auth/oidc/callback`;
    await issuer.serve({ redirectUri, groups: { ada: ['pki-team'], mallory: ['others'] } });
    estuary = await Estuary.start({
      configure: (config, dir) => {
        const roles = { 'pki-team': { roles: ['ra'], labels: ['lab'] } };
        const oidc = oidcSection(issuer, dir, redirectUri, roles);
        Object.assign(section(config, 'admin'), { port, oidc });
      },
    });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await estuary.stop();
    await issuer.stop();
  });

  async function toProvider(window: Window): Promise<void> {
    await window.page.goto('/');
    await window.page.getByRole('link', { name: 'Sign in with single sign-on' }).click({ noWaitAfter: true });
    await window.page.locator('input[name=login]').waitFor();
  }

  async function logIn(window: Window, account: string): Promise<void> {
    await window.page.locator('input[name=login]').fill(account);
    await window.page.locator('input[name=password]').fill('any');
    await window.page.keyboard.press('Enter');
  }

  /** Signs in, and stops where the provider sends the browser back. Redirects are not routed, so they become pages. */
  async function codeOf(window: Window, account: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    await window.page.route(`${issuer.url}/**`, async (route) => {
      const answer = await route.fetch({ maxRedirects: 0 });
      const location = new URL(answer.headers()['location'] ?? '', route.request().url()).href;
      if (answer.status() !== 303) return route.fulfill({ response: answer });
      const body = location.includes('code=')
        ? 'stolen'
        : `<script>location.replace(${JSON.stringify(location)})</script>`;
      if (location.includes('code=')) resolve(location);
      return route.fulfill({ status: 200, contentType: 'text/html', body });
    });
    await toProvider(window);
    await logIn(window, account);
    const url = await promise;
    await window.page.unrouteAll({ behavior: 'wait' });
    return url;
  }

  const cookies = async (window: Window): Promise<string[]> =>
    (await window.context.cookies(`https://127.0.0.1:${estuary.server.port('admin')}`)).map(({ name }) => name);

  test('the console shows who somebody is, how they signed in, for which labels, and why a page is not offered; signing out ends it', async () => {
    const window = await Window.open(browser, estuary);
    await toProvider(window);
    expect(await cookies(window)).toEqual([STATE]);
    await logIn(window, 'ada');
    const me = window.page.locator('.me');
    await me.waitFor();
    expect(await me.innerText()).toMatch(/Display of ada\s+ra for lab\s+Signed in with single sign-on/);
    expect(await cookies(window)).toEqual([SESSION]);
    expect((await window.fetch('/admin/requests')).status).toBe(200);
    expect((await window.fetch('/admin/audit')).status).toBe(403);
    await window.go('audit');
    await window.page.getByText('You need the role auditor or admin. Your roles: ra for lab.').waitFor();
    await window.go('tokens/new');
    await window.page.getByText('Your role is limited to lab.').waitFor();
    expect(await window.page.getByLabel('CA', { exact: true }).inputValue()).toBe('lab');
    await window.page.getByRole('button', { name: 'Sign out' }).click();
    await window.page.getByRole('link', { name: 'Sign in with single sign-on' }).waitFor();
    expect(await cookies(window)).toEqual([]);
    expect((await window.fetch('/admin/session')).status).toBe(401);
    expect(window.problems).toEqual([]);
    await window.close();
  });

  test('a code that was stolen on its way back is worth nothing in another browser, and nothing once it was used', async () => {
    const [victim, thief] = [await Window.open(browser, estuary), await Window.open(browser, estuary)];
    const stolen = await codeOf(victim, 'ada');
    // With an attempt of the thief's own under way.
    await toProvider(thief);
    await thief.page.goto(stolen);
    await thief.page.getByRole('heading', { name: 'Not signed in' }).waitFor();
    expect(await cookies(thief)).toEqual([]);
    await victim.page.goto(stolen);
    await victim.page.locator('.me').waitFor();
    const late = await victim.page.goto(stolen);
    expect(late?.status()).toBe(401);
    await thief.page.goto(stolen);
    expect(await cookies(thief)).toEqual([]);
    await Promise.all([victim.close(), thief.close()]);
  });

  test('somebody without a role gets a page that says so, and no session', async () => {
    const window = await Window.open(browser, estuary);
    await toProvider(window);
    await logIn(window, 'mallory');
    await window.page.getByText('your groups at the OpenID provider have no role here').waitFor();
    expect(await cookies(window)).toEqual([]);
    await window.page.getByRole('link', { name: 'Back to the console' }).click();
    await window.page.getByLabel('Administrator’s token').waitFor();
    await window.close();
  });
});
