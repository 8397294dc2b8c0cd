/** Jobs of console users, each from the overview, with at most the clicks and entries that docs/guides/console.md states. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Locator } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, itemsOf } from '../support/estuary.ts';
import { ROOT } from '../support/root.ts';
import { Window } from './browser.ts';
import { enroll, firstItem, type World } from './world.ts';

/** A row of the table in the documentation: the job, its clicks, and its entries. */
const [, TABLE = ''] =
  /^## Fifteen jobs$(.*?)^## /ms.exec(readFileSync(join(ROOT, 'docs/guides/console.md'), 'utf8')) ?? [];
const DOCUMENTED = new Map(
  [...TABLE.matchAll(/^\| ([^|]+?) \| (\d+) \| (\d+) \|/gm)].map(([, job = '', clicks, entries]) => [
    job,
    { clicks: Number(clicks), entries: Number(entries) },
  ]),
);

/** Does a job, and counts it: a choice is a click, and what is typed in one go, with Enter, is an entry. */
class Job {
  readonly window: Window;
  clicks = 0;
  entries = 0;

  constructor(window: Window) {
    this.window = window;
  }

  get page() {
    return this.window.page;
  }

  async click(what: Locator): Promise<void> {
    this.clicks++;
    await what.click();
  }

  link = (name: string | RegExp): Promise<void> =>
    this.click(this.page.locator('main').getByRole('link', { name, exact: true }).first());

  button = (name: string): Promise<void> => this.click(this.page.getByRole('button', { name, exact: true }));

  menu = (name: string): Promise<void> =>
    this.click(this.page.getByRole('navigation').getByRole('link', { name, exact: true }));

  async type(text: string, field?: string): Promise<void> {
    this.entries++;
    if (field === undefined) {
      await this.page.keyboard.type(text);
      return this.page.keyboard.press('Enter');
    }
    await this.page.getByLabel(field).fill(text);
    await this.page.getByLabel(field).press('Enter');
  }

  /** `/`, the text, and Enter. */
  async find(text: string): Promise<void> {
    await this.page.keyboard.press('/');
    await this.type(text);
  }
}

type Work = (job: Job, world: World) => Promise<void>;

const renewal = async (world: World, id: string, names: readonly string[]): Promise<number> => {
  const client = { cert: certificatePem(await enroll(world, id)), key: world.key.pem };
  const answer = await world.estuary.enroll(onTheWire(simpleCsr(world.key, id, names)), {
    client,
    path: 'simplereenroll',
  });
  return answer.status;
};

const pending = async (world: World, id: string): Promise<string> => {
  await enroll(world, id, [`${id}.lab.example`], 'lab/simpleenroll');
  return (await firstItem(world, `/admin/requests?search=${id}`))('id');
};

const JOBS: readonly (readonly [name: string, role: 'ra' | 'auditor', work: Work])[] = [
  [
    'Create a first token',
    'ra',
    async (job) => {
      await job.menu('Tokens');
      await job.link('New token');
      await job.type('saw-1', 'Client ID');
      await job.page.getByRole('heading', { name: 'Token for saw-1' }).waitFor();
    },
  ],
  [
    'Approve a request',
    'ra',
    async (job, world) => {
      const id = await pending(world, 'saw-2');
      await job.menu('Requests');
      await job.link('CN=saw-2');
      await job.button('Approve …');
      await job.button('Approve');
      await job.page.getByText('Another administrator must approve the request.').waitFor();
      const { json } = await world.estuary.admin('GET', `/admin/requests/${id}`);
      expect(json).toMatchObject({ status: 'pending', decided_by: ['ra’s token'] });
    },
  ],
  [
    'Approve 60 requests',
    'ra',
    async (job, { estuary, key }) => {
      for (let n = 1; n <= 60; n++) {
        const { token } = await estuary.otp({ client_id: `many-${n}` });
        const csr = onTheWire(simpleCsr(key, `many-${n}`, [`many-${n}.lab.example`]));
        expect((await estuary.enroll(csr, { password: token, path: 'lab/simpleenroll' })).status).toBe(202);
      }
      await job.menu('Requests');
      job.entries++;
      const found = job.page.waitForResponse(/search=many-/);
      const field = job.page.getByLabel('Request', { exact: true });
      await field.fill('many-');
      await field.press('Enter');
      await found;
      await job.page.getByRole('cell', { name: 'CN=many-60' }).waitFor();
      await job.page.getByText('50 of 60 shown').waitFor();
      await job.button('Show more');
      await job.page.getByText('60 in total').waitFor();
      await job.click(job.page.getByLabel(/^Select all /));
      await job.click(job.page.getByRole('button', { name: /^Approve \d+ requests …$/ }));
      await job.click(job.page.getByRole('dialog').getByRole('button', { name: /^Approve \d+ requests$/ }));
      await job.page.getByText(/Approved: \d+ requests\./).waitFor();
      const { json } = await estuary.admin('GET', '/admin/requests?search=many-&limit=100');
      expect(itemsOf(json).map((record) => record['decided_by'])).toEqual(
        Array.from({ length: 60 }, () => ['ra’s token']),
      );
    },
  ],
  [
    'Reject a request',
    'ra',
    async (job, world) => {
      const id = await pending(world, 'saw-3');
      await job.menu('Requests');
      await job.link('CN=saw-3');
      await job.page.getByText('This requester has no earlier certificate.').waitFor();
      await job.page.getByText('What the policy says').waitFor();
      await job.button('Reject …');
      await job.type('not ours', 'Reason');
      await job.page.locator('.heading .badge', { hasText: 'rejected' }).waitFor();
      const { json } = await world.estuary.admin('GET', `/admin/requests/${id}`);
      expect(json).toMatchObject({ status: 'rejected', reason: 'not ours' });
    },
  ],
  [
    'Find a device by a part of its name',
    'ra',
    async (job) => {
      await job.find('ATE-no');
      await job.link('gate-north');
      await job.page.getByRole('heading', { level: 1, name: 'gate-north' }).waitFor();
    },
  ],
  [
    'Find out why a renewal was rejected',
    'ra',
    async (job, world) => {
      await world.estuary.admin('POST', '/admin/devices', { id: 'saw-4' });
      expect(await renewal(world, 'saw-4', ['other.example'])).toBe(403);
      await job.find('saw-4');
      await job.link('saw-4');
      await job.page.getByText(/^Renewal rejected: .*\[DNS:other\.example\] instead of \[\]/).waitFor();
    },
  ],
  [
    'Revoke a stolen device',
    'ra',
    async (job, world) => {
      const { estuary } = world;
      await estuary.admin('POST', '/admin/devices', { id: 'saw-5' });
      await enroll(world, 'saw-5');
      await estuary.otp({ client_id: 'saw-5' });
      await job.find('saw-5');
      await job.link('saw-5');
      await job.button('Disable …');
      await job.click(job.page.getByLabel('Also revoke its 1 valid certificate and 1 active token'));
      job.clicks++;
      await job.page.getByLabel('Reason').selectOption('keyCompromise');
      await job.button('Disable');
      await job.page.locator('.heading .badge', { hasText: 'disabled' }).waitFor();
      const { json } = await estuary.admin('GET', '/admin/devices/saw-5');
      expect(json).toMatchObject({
        enabled: false,
        certificates: [{ status: 'revoked', reason: 'keyCompromise' }],
        tokens: [{ status: 'revoked' }, { status: 'consumed' }],
      });
    },
  ],
  [
    'Find out who approved a certificate',
    'auditor',
    async (job, { estuary, tokens, key }) => {
      const csr = onTheWire(simpleCsr(key, 'saw-6', ['saw-6.lab.example']));
      const { token } = await estuary.otp({ client_id: 'saw-6' });
      const poll = () => estuary.enroll(csr, { password: token, path: 'lab/simpleenroll' });
      expect((await poll()).status).toBe(202);
      const [request] = itemsOf((await estuary.admin('GET', '/admin/requests?search=saw-6')).json);
      for (const bearer of [tokens.admin, tokens.ra])
        await estuary.admin('POST', `/admin/requests/${String(request?.['id'])}/approve`, undefined, bearer);
      expect((await poll()).status).toBe(200);
      await job.find('saw-6');
      await job.link('CN=saw-6');
      await job.page.getByText('Request approved by ra’s token').waitFor();
    },
  ],
  [
    'See what expires next week',
    'ra',
    async (job) => {
      await job.link(/within 7 days/);
      await job.page.getByRole('cell', { name: 'CN=saw-6' }).waitFor();
      expect(await job.page.getByRole('cell', { name: 'CN=press-1' }).count()).toBe(0);
    },
  ],
  [
    'Import 1,000 devices of which 3 are invalid',
    'ra',
    async (job, { estuary }) => {
      const rows = Array.from({ length: 1000 }, (_, n) => `fleet-${n + 1},true,hall ${n % 7}`);
      for (const bad of [17, 500, 999]) rows[bad - 1] = `fleet-${bad},perhaps,hall 1`;
      const file = join(estuary.dir, 'fleet.csv');
      writeFileSync(file, `id,enabled,note\n${rows.join('\n')}\n`);
      await job.menu('Devices');
      await job.link('Import');
      job.clicks++;
      await job.page.getByLabel('File').setInputFiles(file);
      await job.page.getByText('3 rows rejected').waitFor();
      // The first line is the header.
      for (const bad of [17, 500, 999]) await job.page.getByRole('row', { name: `${bad + 1} fleet-${bad} ` }).waitFor();
      await job.button('Import 997 devices');
      await job.page.getByText('Imported: 997 devices').waitFor();
      expect(itemsOf((await estuary.admin('GET', '/admin/devices?search=fleet&limit=1000')).json)).toHaveLength(997);
    },
  ],
  [
    'Import 500 tokens and save their secrets',
    'ra',
    async (job, { estuary }) => {
      const file = join(estuary.dir, 'tokens-to-import.csv');
      const ids = Array.from({ length: 500 }, (_, n) => `many-tokens-${n + 1}`);
      writeFileSync(file, `client_id\n${ids.join('\n')}\n`);
      await job.menu('Tokens');
      await job.link('Import');
      job.clicks++;
      await job.page.getByLabel('File').setInputFiles(file);
      await job.button('Import 500 tokens');
      // The import continues on other pages.
      await job.page.getByText(/ of 500 rows done\./).waitFor();
      await job.page.evaluate("location.hash = '#/requests'");
      await job.page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
      await job.page.evaluate("location.hash = '#/tokens/bulk'");
      const download = job.page.waitForEvent('download');
      await job.button('Save the results');
      const saved = readFileSync(await (await download).path(), 'utf8')
        .trimEnd()
        .split('\r\n');
      expect(saved).toHaveLength(501);
      const column = (saved[0] ?? '').split(',').indexOf('token');
      expect(new Set(saved.slice(1).map((line) => line.split(',')[column])).size, 'secrets').toBe(500);
    },
  ],
  [
    'Find a certificate by its fingerprint',
    'auditor',
    async (job, world) => {
      const { fingerprint256 } = new X509Certificate(certificatePem(await enroll(world, 'saw-7')));
      await job.find(fingerprint256);
      await job.link('CN=saw-7');
      await job.page.getByRole('heading', { level: 1, name: 'CN=saw-7' }).waitFor();
    },
  ],
  [
    'Start a campaign',
    'ra',
    async (job) => {
      await job.menu('Campaigns');
      await job.link('New campaign');
      await job.type('oven', 'Subject');
      await job.page.getByRole('heading', { name: 'Replace 1 certificate?' }).waitFor();
      await job.button('Start the campaign');
      await job.page.getByText('0 of 1 replaced').waitFor();
    },
  ],
  [
    'Hand over a report as CSV',
    'auditor',
    async (job) => {
      await job.menu('Certificates');
      const download = job.page.waitForEvent('download');
      await job.button('Export CSV');
      expect(readFileSync(await (await download).path(), 'utf8')).toMatch(/^serial,ca,subject.*CN=press-1/s);
    },
  ],
];

export function countedJobs(given: () => { readonly world: World; readonly browser: Browser }): void {
  describe('the jobs, each from the overview with the clicks and entries that the guide states', () => {
    test.each(JOBS)('%s', async (name, role, work) => {
      const { world, browser } = given();
      const window = await Window.open(browser, world.estuary);
      await window.signIn(world.tokens[role]);
      const job = new Job(window);
      await work(job, world);
      expect({ clicks: job.clicks, entries: job.entries }).toEqual(DOCUMENTED.get(name));
      expect(window.problems).toEqual([]);
      await window.close();
    });

    test('Sign in with OpenID Connect', async () => {
      const { world, browser } = given();
      const window = await Window.open(browser, world.estuary);
      const job = new Job(window);
      await window.page.goto('/');
      await window.page.getByRole('link', { name: 'Sign in with single sign-on' }).waitFor();
      job.clicks++;
      await window.page.getByRole('link', { name: 'Sign in with single sign-on' }).click({ noWaitAfter: true });
      await window.page.locator('input[name=login]').fill('ada');
      await window.page.locator('input[name=password]').fill('any');
      await window.page.keyboard.press('Enter');
      await window.page.locator('.me').getByText('Signed in with single sign-on').waitFor();
      expect({ clicks: job.clicks, entries: job.entries }).toEqual(DOCUMENTED.get('Sign in with OpenID Connect'));
      await window.close();
    });

    test('the guide lists these jobs and no others', () => {
      expect([...DOCUMENTED.keys()]).toEqual([...JOBS.map(([name]) => name), 'Sign in with OpenID Connect']);
    });
  });
}
