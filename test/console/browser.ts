/** Debian's Chromium, for the tests of the console. */
import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions } from 'playwright-core';
import type { Estuary } from '../support/estuary.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));

export const hasChromium = CHROMIUM !== undefined;

/** One without a window; as root it has no sandbox of its own, and loads nothing but pages of ours. */
export function startBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('there is no chromium');
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--lang=en-GB'],
  });
}

/** A window of somebody else: cookies and certificates of its own. */
export async function openWindow(
  browser: Browser,
  estuary: Estuary,
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: consoleUrl(estuary),
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 800 },
    timezoneId: 'UTC',
    locale: 'en-GB',
    ...options,
  });
  context.setDefaultTimeout(20_000);
  return context;
}

export const consoleUrl = (estuary: Estuary): string => `https://127.0.0.1:${estuary.server.port('admin')}`;
