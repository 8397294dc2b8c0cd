/** Debian's Chromium, for the tests of the console. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import type { Estuary } from '../support/estuary.ts';
import { findCommand } from '../support/requires.ts';
import { until } from '../support/until.ts';

/** Without a window. As root it has no sandbox, and loads nothing but pages of these tests. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findCommand('chromium') ?? 'chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--lang=en-GB'],
  });
}

export const consoleUrl = (estuary: Estuary): string => `https://127.0.0.1:${estuary.server.port('admin')}`;

/** A browser window with its own cookies and certificates. Collects the errors of its pages in `problems`. */
export class Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors of scripts, and what the content security policy refused. */
  readonly problems: string[] = [];

  constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on('pageerror', (error) => this.problems.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy|TrustedHTML|TrustedScript/i.test(message.text())) this.problems.push(message.text());
    });
    page.on('dialog', (dialog) => {
      this.problems.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  static async open(browser: Browser, estuary: Estuary, options: BrowserContextOptions = {}): Promise<Window> {
    const context = await browser.newContext({
      baseURL: consoleUrl(estuary),
      ignoreHTTPSErrors: true,
      viewport: { width: 1280, height: 800 },
      timezoneId: 'UTC',
      locale: 'en-GB',
      // An animation draws each frame.
      reducedMotion: 'reduce',
      ...options,
    });
    context.setDefaultTimeout(60_000);
    return new Window(context, await context.newPage());
  }

  async signIn(token: string): Promise<void> {
    await this.page.goto('/');
    await this.page.getByLabel('Administrator’s token').fill(token);
    await this.page.keyboard.press('Enter');
    await this.page.locator('#main h1').waitFor();
    // The effects that listen to keys and move the focus run after the first frame. They set the title, too.
    await until('the console listens', async () => (await this.page.title()).includes(' – Estuary'));
  }

  /** `g` and a key, sent at once: the second counts for a second and a half after the first. */
  async goByKey(key: string): Promise<void> {
    await Promise.all(['g', key].map((pressed) => this.page.keyboard.press(pressed)));
  }

  /** What a notice says after an action; it is shown for some seconds. */
  async notice(text: string, action: Promise<void>): Promise<void> {
    await Promise.all([this.page.getByText(text).waitFor(), action]);
  }

  /** A page by its link, once it shows what it has. */
  async go(hash: string): Promise<void> {
    await this.page.goto(`/#/${hash}`);
    await this.settled();
  }

  async settled(): Promise<void> {
    await this.page.locator('main h1').waitFor();
    await this.page.locator('.loading').first().waitFor({ state: 'detached' });
  }

  /** A call from a script of the page, as a trespasser's would be. */
  fetch(path: string, init: object = {}): Promise<{ status: number; text: string }> {
    const call = `fetch(${JSON.stringify(path)}, ${JSON.stringify(init)})`;
    return this.page.evaluate<{ status: number; text: string }>(
      `${call}.then(async (answer) => ({ status: answer.status, text: await answer.text() }))`,
    );
  }

  close(): Promise<void> {
    return this.context.close();
  }
}

/** The certificate that the quickstart made for an administrator. */
export function adminCertificate(estuary: Estuary): BrowserContextOptions {
  const file = (name: string): Buffer => readFileSync(join(estuary.dir, 'admin', name));
  return { clientCertificates: [{ origin: consoleUrl(estuary), cert: file('client.pem'), key: file('client.key') }] };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe-core finds wrong with a page by WCAG 2.2 AA and its own best practices. @param rules only these */
export async function accessibilityProblems(page: Page, rules?: readonly string[]): Promise<string[]> {
  await page.evaluate(AXE);
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules === undefined ? {} : { runOnly: rules }) });
  return page.evaluate<string[]>(`axe.run(document, ${options}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html + ' ' + failureSummary)))`);
}
