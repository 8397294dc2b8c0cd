/** The tasks of console users, in a browser with the built server. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildCsr, commonName, onTheWire, simpleCsr } from '../support/csr.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { certificatePem, itemsOf, section } from '../support/estuary.ts';
import { importCertificate } from '../support/imported-certificate.ts';
import { freePort } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { TokenIssuer } from '../support/token-issuer.ts';
import { until } from '../support/until.ts';
import { adminCertificate, startBrowser, Window } from './browser.ts';
import { countedJobs } from './counted-jobs.ts';
import { enroll, firstItem, makeWorld, oidcSection, settle, type World } from './world.ts';

const run = promisify(execFile);

describe.skipIf(!requires('chromium', 'openssl', 'curl'))('jobs', () => {
  let world: World;
  let browser: Browser;
  let issuer: TokenIssuer;
  beforeAll(async () => {
    issuer = await TokenIssuer.start([]);
    const port = await freePort();
    const redirectUri = `https://127.0.0.1:${port}/auth/oidc/callback`;
    await issuer.serve({ redirectUri, groups: { ada: ['pki-team'] } });
    world = await makeWorld((config, dir) => {
      const roles = { 'pki-team': { roles: ['ra'] } };
      Object.assign(section(config, 'admin'), { port, oidc: oidcSection(issuer, dir, redirectUri, roles) });
    });
    [browser] = await Promise.all([startBrowser(), settle(world)]);
  });
  afterAll(async () => {
    await browser.close();
    await world.estuary.stop();
    await issuer.stop();
  });

  const signedIn = async (token: string): Promise<Window> => {
    const window = await Window.open(browser, world.estuary);
    await window.signIn(token);
    return window;
  };

  countedJobs(() => ({ world, browser }));

  const list = async (path: string) => itemsOf((await world.estuary.admin('GET', path)).json);

  test('the walk: a token, its printed line, the certificate, its revocation, in at most eleven clicks and groups of keys', async () => {
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    let steps = 0;
    const step = async (what: Promise<unknown>): Promise<void> => {
      steps += 1;
      await what;
    };
    const keys = async (...all: readonly string[]): Promise<void> => {
      for (const key of all) await page.keyboard.press(key);
    };
    await step(window.goByKey('t'));
    await step(page.getByRole('link', { name: 'New token' }).click());
    await step(page.getByLabel('Client ID').fill('kiln-3'));
    await step(page.keyboard.press('Enter'));
    await page.getByRole('heading', { name: 'Token for kiln-3' }).waitFor();
    expect(await page.getByLabel('EST server').inputValue()).toBe(
      `https://127.0.0.1:${world.estuary.server.port('est')}`,
    );
    await page.getByRole('img', { name: 'QR code with the token of kiln-3' }).waitFor();
    const lines = await page.locator('pre[aria-label="openssl and curl"]').innerText();
    const folder = mkdtempSync(join(world.estuary.dir, 'device-'));
    copyFileSync(join(world.estuary.dir, 'ca/root.pem'), join(folder, 'root.pem'));
    await run('bash', ['-euo', 'pipefail', '-c', lines], {
      cwd: folder,
      env: { ...process.env, no_proxy: '*' },
      timeout: 60_000,
    });
    expect(readFileSync(join(folder, 'kiln-3.pem'), 'utf8')).toContain('BEGIN CERTIFICATE');
    await page.locator('body').click({ position: { x: 5, y: 5 } });
    await step(keys('/'));
    await step(page.keyboard.type('kiln'));
    await step(page.keyboard.press('Enter'));
    await step(page.getByRole('link', { name: 'CN=kiln-3' }).click());
    await page.getByRole('button', { name: 'Revoke …' }).waitFor();
    await step(page.getByRole('button', { name: 'Revoke …' }).click());
    await step(page.getByRole('button', { name: 'Revoke the certificate' }).click());
    await page.locator('.heading .badge', { hasText: 'revoked' }).waitFor();
    expect(steps).toBeLessThanOrEqual(11);
    expect(await list('/admin/certificates?subject=kiln-3&status=revoked')).toHaveLength(1);
    expect(window.problems).toEqual([]);
    await window.close();
  });

  test('signing in by certificate leads to an approved request; the second administrator decides', async () => {
    const first = await Window.open(browser, world.estuary, adminCertificate(world.estuary));
    await first.page.goto('/#/requests?status=pending&requester=gate-north');
    await first.page.getByRole('button', { name: 'Sign in with this certificate' }).click();
    await first.page.getByRole('link', { name: 'CN=gate-north' }).click();
    await first.page.getByRole('button', { name: 'Approve …' }).click();
    await first.notice(
      'Another administrator must approve the request.',
      first.page.getByRole('button', { name: 'Approve', exact: true }).click(),
    );
    await first.page.getByRole('button', { name: 'Approve …' }).click();
    await first.notice(
      'another administrator must approve it',
      first.page.getByRole('button', { name: 'Approve', exact: true }).click(),
    );
    const hash = new URL(first.page.url()).hash;
    await first.close();

    const second = await signedIn(world.tokens.ra);
    await second.page.goto(`/${hash}`);
    await second.page.getByRole('button', { name: 'Approve …' }).click();
    await second.page.getByRole('button', { name: 'Approve', exact: true }).click();
    await second.page.locator('.heading .badge', { hasText: 'approved' }).waitFor();
    expect(await list('/admin/requests?status=approved&requester=gate-north')).toHaveLength(1);
    expect([...first.problems, ...second.problems]).toEqual([]);
    await second.close();
  });

  test('many tokens: a check of each row, a result for each row, and the file of them', async () => {
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    await window.go('tokens/bulk');
    await page.getByLabel('CSV').fill('client_id,max_uses\nbulk-1,2\n"bulk, 2",1\nbulk-3,none\n');
    // The server has checked every row before the user starts the import.
    await page.getByText('2 of 3 rows can be imported').waitFor();
    await page.getByText('client_id "bulk-3": max_uses must be an integer').waitFor();
    expect(await list('/admin/otp?client_id=bulk-1')).toEqual([]);
    await window.notice('Imported: 2 tokens', page.getByRole('button', { name: 'Import 2 tokens' }).click());
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the results' }).click(),
    ]);
    expect(readFileSync(await file.path(), 'utf8')).toMatch(/bulk-1,.*"bulk, 2",.*FIELD_INVALID/s);
    expect(await list('/admin/otp?client_id=bulk%2C%202')).toHaveLength(1);
    await window.close();
  });

  test('a token is revoked', async () => {
    const window = await signedIn(world.tokens.ra);
    await window.go('tokens?client_id=robot-4');
    await window.page.getByRole('button', { name: 'Revoke the token of robot-4' }).click();
    await window.notice(
      'The token of robot-4 is revoked.',
      window.page.getByRole('button', { name: 'Revoke the token', exact: true }).click(),
    );
    await window.page.locator('td .badge', { hasText: 'revoked' }).waitFor();
    await window.close();
  });

  test('devices: registered, imported, switched off, and forgotten', async () => {
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    await window.go('devices/new');
    await page.getByLabel('ID', { exact: true }).fill('new');
    await page.getByLabel('Note').fill('a name that is a page, too');
    await page.getByRole('button', { name: 'Register the device' }).click();
    await page.getByRole('heading', { level: 1, name: 'new' }).waitFor();
    await page.getByRole('button', { name: 'Disable …' }).click();
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await page.locator('.heading .badge', { hasText: 'disabled' }).waitFor();
    await page.getByRole('button', { name: 'Delete …' }).click();
    await page.getByRole('button', { name: 'Delete the device' }).click();
    await page.getByRole('heading', { level: 1, name: 'Devices' }).waitFor();
    expect(await list('/admin/devices?id=new')).toEqual([]);
    await window.go('devices/import');
    await page.getByLabel('CSV').fill('id,note,attributes.site\nlathe-1,first,hall 1\nlathe-2,,hall 1\n');
    await window.notice('Imported: 2 devices', page.getByRole('button', { name: 'Import 2 devices' }).click());
    await page.getByRole('link', { name: 'Change known devices' }).click();
    await page.getByLabel('CSV').waitFor();
    expect(await page.getByText('Imported: 2 devices').count()).toBe(0);
    // An import that changes known devices changes only what it names.
    await world.estuary.admin('PATCH', '/admin/devices/lathe-1', { enabled: false });
    await window.go('devices');
    await window.go('devices/import?mode=upsert');
    await page.getByLabel('CSV').fill('id,note,enabled,attributes.rack\nlathe-1,,,7\n');
    await window.notice('Imported: 1 device', page.getByRole('button', { name: 'Import 1 device' }).click());
    const lathe = { enabled: false, note: 'first', attributes: { site: 'hall 1', rack: '7' } };
    expect(await list('/admin/devices?id=lathe-1')).toMatchObject([lathe]);
    await window.close();
  });

  test('one field finds everything, by a part of a name, an ID, or a serial number in any form; it forgets at the sign-out', async () => {
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    const certificate = await firstItem(world, '/admin/certificates?subject=scale-12');
    const colons = certificate('serial').match(/../g)?.join(':').toUpperCase() ?? '';
    const token = await world.estuary.otp({ client_id: 'found-1' });
    const found = async (text: string, name: string) => {
      await page.keyboard.press('/');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: `Results for “${text}”` }).waitFor();
      await page.locator('main').getByRole('link', { name, exact: true }).first().waitFor();
    };
    await found(colons, 'CN=scale-12');
    await found(`0x00${certificate('serial')}`, 'CN=scale-12');
    await found(certificate('request_id'), 'CN=scale-12');
    await found('12.HALL4', 'CN=scale-12');
    await found(token.id, 'found-1');
    await found('ALL 4 oven', 'oven-7');
    await window.go('find');
    const recent = page.getByRole('heading', { name: 'Recent searches' });
    await recent.waitFor();
    expect(await page.locator('.hits a').allInnerTexts()).toEqual(
      expect.arrayContaining([colons, token.id, '12.HALL4']),
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Administrator’s token').waitFor();
    expect(await page.evaluate('localStorage.getItem("searches")')).toBeNull();
    expect(window.problems).toEqual([]);
    await window.close();
  });

  test('certificates are revoked, and devices disabled, in bulk, each after a preview', async () => {
    for (const id of ['bulk-a', 'bulk-b']) {
      await world.estuary.admin('POST', '/admin/devices', { id });
      await enroll(world, id);
    }
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    await window.go('certificates');
    expect(await page.getByRole('button', { name: 'Revoke …' }).count()).toBe(0);
    await window.go('certificates?subject=bulk-');
    await page.getByRole('button', { name: 'Revoke …' }).click();
    await page.getByRole('dialog').getByText('CN=bulk-b').waitFor();
    await window.notice(
      'Revoked: 2 certificates.',
      page.getByRole('button', { name: 'Revoke 2 certificates' }).click(),
    );
    expect(await list('/admin/certificates?subject=bulk-&status=revoked')).toHaveLength(2);
    await window.go('devices?search=bulk-');
    await page.getByRole('button', { name: 'Disable …' }).click();
    await page.getByRole('dialog').getByText('bulk-b').waitFor();
    await window.notice('Disabled: 2 devices.', page.getByRole('button', { name: 'Disable 2 devices' }).click());
    expect(await list('/admin/devices?search=bulk-&enabled=false')).toHaveLength(2);
    expect(window.problems).toEqual([]);
    await window.close();
  });

  test('a device is changed, gets a token and shows its history with identifiers, all on its page', async () => {
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    await window.go('devices/id/gate-north');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Note').fill('at the north gate');
    await page.getByLabel('Attributes').fill('site = hall 5\nrack=7');
    await window.notice('gate-north is saved.', page.getByRole('button', { name: 'Save' }).click());
    const changed = { note: 'at the north gate', attributes: { site: 'hall 5', rack: '7' }, enabled: true };
    expect(await list('/admin/devices?id=gate-north')).toMatchObject([changed]);
    await page.getByRole('button', { name: 'New token' }).click();
    await page.getByRole('button', { name: 'Create the token' }).click();
    await page.getByRole('heading', { name: 'Token for gate-north' }).waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.locator('.timeline').getByText('Device changed by ra’s token').waitFor();
    const [token] = await list('/admin/otp?client_id=gate-north&status=active');
    expect(await page.getByText(String(token?.['id'])).count()).toBe(0);
    await page.getByRole('button', { name: 'Identifiers' }).click();
    await page.getByText(String(token?.['id'])).waitFor();
    await window.close();
  });

  test('a campaign is stopped; a receiver that does not accept a sample says why', async () => {
    const window = await signedIn(world.tokens.admin);
    const { page } = window;
    await window.go('campaigns');
    await page.getByRole('link', { name: 'New root' }).click();
    await page.getByRole('button', { name: 'Stop …' }).click();
    await window.notice('The campaign is stopped.', page.getByRole('button', { name: 'Stop the campaign' }).click());
    expect(await list('/admin/renewals')).not.toContainEqual(expect.objectContaining({ reason: 'New root' }));
    await window.go('notifications');
    await window.notice(
      'operators: the receiver did not accept the sample',
      page.getByRole('button', { name: 'Send a sample to operators' }).click(),
    );
    await window.close();
  });

  test('who is about to lose its certificate and why; an expired certificate renews once more, until that is ended', async () => {
    const { estuary, key, tokens } = world;
    await estuary.admin('POST', '/admin/devices', { id: 'kettle-1' });
    const client = { cert: certificatePem(await enroll(world, 'kettle-2')), key: key.pem };
    const csr = onTheWire(simpleCsr(key, 'kettle-2', ['other.example']));
    expect((await estuary.enroll(csr, { client, path: 'simplereenroll' })).status).toBe(403);
    const { serial } = await importCertificate(estuary, key, 'kettle-3');
    const states = async () => (await list('/admin/fleet?subject=kettle')).map(({ state }) => state);
    await until('the states are known', async () => (await states()).join(' ') === 'expired failing');

    const window = await signedIn(tokens.ra);
    const { page } = window;
    const counts = { expired: 0, failing: 2, waiting: 0, stuck: 0, late: 0, due: 0, never: 1, ok: 5 };
    const labels = { devices: counts, lab: { ...counts, failing: 1 } };
    await page.route('**/admin/fleet/summary', (route) =>
      route.fulfill({ json: { as_of: new Date().toISOString(), labels, expiring: { 1: 0, 7: 4, 30: 12 } } }),
    );
    await page.reload();
    await page.getByText('within 1 day: 0, 7 days: 4, 30 days: 12').waitFor();
    await page
      .getByRole('listitem')
      .filter({ hasText: /^failing3$/ })
      .getByRole('link')
      .click();
    await page.getByText('A renewal was rejected, or expired in the queue.').waitFor();
    const row = page.getByRole('row', { name: 'CN=kettle-2 failing' });
    await row.getByRole('cell', { name: 'other.example' }).waitFor();
    // The keyboard, not the mouse, unfolds a row.
    await page.keyboard.press('Tab');
    await row.getByRole('link').focus();
    const cut = await page.evaluate<number>(
      `Math.max(...[...document.activeElement.closest('tr').cells].map((cell) => cell.scrollWidth - cell.clientWidth))`,
    );
    expect(cut, 'pixels of the message and others that are cut off').toBe(0);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(readFileSync(await file.path(), 'utf8')).toMatch(/^state,since,ca.*failing.*CN=kettle-2/s);
    await window.go('fleet?state=never&device=kettle-1');
    await page.getByRole('link', { name: 'kettle-1' }).waitFor();

    await window.go('fleet?subject=kettle');
    await page.getByRole('button', { name: 'Renew once more … CN=kettle-3' }).click();
    await page.getByLabel('Days').fill('3');
    await page.getByLabel('Reason').fill('was in a drawer');
    await window.notice(
      'CN=kettle-3 may renew once more until',
      page.getByRole('button', { name: 'Allow one renewal' }).click(),
    );
    const passUntil = async () => (await firstItem(world, `/admin/certificates?serial=${serial}`))('rescue_until');
    expect(Date.parse(await passUntil()) - Date.now()).toBeGreaterThan(2.9 * 86_400_000);
    await page.getByRole('link', { name: 'CN=kettle-3' }).click();
    await page.getByText('One more renewal until').waitFor();
    await page.getByRole('button', { name: 'End the pass …' }).click();
    await page.getByRole('button', { name: 'End the pass', exact: true }).click();
    await page.getByText('One more renewal until').waitFor({ state: 'detached' });
    expect(await passUntil()).toBe('null');
    expect(window.problems).toEqual([]);
    await window.close();

    const auditor = await signedIn(tokens.auditor);
    await auditor.go('fleet?subject=kettle');
    await auditor.page.getByRole('row', { name: 'CN=kettle-3 expired' }).waitFor();
    expect(await auditor.page.getByRole('button', { name: /Renew once more/ }).count()).toBe(0);
    await auditor.close();
  });

  test('what would happen to a CSR, and which rule says so', async () => {
    const window = await signedIn(world.tokens.ra);
    const { page } = window;
    await window.go('policy');
    await page
      .getByLabel('CSR')
      .fill(encodePem('CERTIFICATE REQUEST', buildCsr(world.key, { subject: commonName('any') })));
    await page.getByLabel('CA', { exact: true }).selectOption('devices');
    await page.getByLabel('Name or certificate').fill('device-9');
    await page.getByRole('button', { name: 'Check the request' }).click();
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    expect(await page.locator('[aria-live] .badge').innerText()).toMatch(/^(issue|rejected)$/);
    await window.close();
  });

  test('an auditor searches, verifies the chain, and takes the records away', async () => {
    const window = await signedIn(world.tokens.auditor);
    const { page } = window;
    await window.go('audit?type=certificate.revoked');
    expect(await page.locator('tbody tr').count()).toBeGreaterThan(0);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(readFileSync(await file.path(), 'utf8')).toMatch(/^seq,time,.*certificate\.revoked/s);
    await page.locator('tbody a').first().click();
    await page.getByText('Previous hash').waitFor();
    await window.go('audit/verify');
    await page.getByText('The chain is complete').waitFor();
    await window.close();
  });

  test('a record that does not fit its hash is found', async () => {
    const window = await signedIn(world.tokens.auditor);
    await window.page.route('**/admin/audit?*', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: (await answer.text()).replace('"stranger"', '"somebody"') });
    });
    await window.go('audit/verify');
    await window.page.getByText(/Record \d+ does not match its hash\./).waitFor();
    await window.close();
  });

  test('an operator ends a lockout', async () => {
    const window = await signedIn(world.tokens.operator);
    await window.go('lockouts');
    await window.page.getByRole('button', { name: 'End the lockout of username:stranger' }).click();
    await window.notice(
      'No active lockouts.',
      window.page.getByRole('button', { name: 'End the lockout', exact: true }).click(),
    );
    await window.close();
  });

  test('an open page shows what happens elsewhere, without being asked', async () => {
    const window = await signedIn(world.tokens.ra);
    await window.go('certificates?subject=late-comer');
    await window.page.getByText('No certificate matches.').waitFor();
    await window.page.getByText('Live', { exact: true }).waitFor();
    await enroll(world, 'late-comer');
    await window.page.getByRole('link', { name: 'CN=late-comer' }).waitFor();
    await window.close();
  });

  test('a search that found nothing in the first rows continues automatically', async () => {
    const window = await signedIn(world.tokens.ra);
    await window.page.route('**/admin/certificates?*', (route) => {
      const url = new URL(route.request().url());
      if (!url.searchParams.has('cursor')) return route.fulfill({ json: { items: [], next_cursor: 'further' } });
      url.searchParams.delete('cursor');
      return route.continue({ url: url.href });
    });
    await window.go('certificates?subject=oven');
    await window.page.getByRole('link', { name: 'CN=oven-7' }).waitFor();
    await window.close();
  });

  test('a registration authority and an auditor see what a certificate stands under, its history, and the verdict on a request', async () => {
    const certificate = await firstItem(world, '/admin/certificates?subject=scale-12');
    const request = await firstItem(world, '/admin/requests?status=pending&requester=press-1');
    for (const role of ['ra', 'auditor'] as const) {
      const window = await signedIn(world.tokens[role]);
      const { page } = window;
      await window.go(`certificates/${certificate('serial')}?ca=devices`);
      await page.locator('.chain').getByText('CN=Quickstart Root CA,O=Estuary quickstart').waitFor();
      await page.locator('.timeline').getByText('Certificate issued until').waitFor();
      await window.go(`requests/${request('id')}`);
      await page.getByText('With 2 approvals it would be issued.').waitFor();
      await page.getByText('of the CA devices, issued').waitFor();
      await page.route('**/admin/requests/*/check', (route) =>
        route.fulfill({
          status: 409,
          json: { code: 'VERDICT_UNKNOWN', message: 'the CA of the request is no longer configured' },
        }),
      );
      await page.reload();
      await page.getByText('The CA of the request is no longer configured.').waitFor();
      await window.close();
    }
  });

  test('an operator sees the CRL and who signs OCSP responses, the profile in words, and each node', async () => {
    const window = await signedIn(world.tokens.operator);
    const { page } = window;
    await window.go('cas/devices');
    await page.locator('.badge', { hasText: 'current' }).waitFor();
    await page.getByText('the key of the CA').waitFor();
    await page.getByText('Certificates are issued immediately.').waitFor();
    await page.route('**/admin/overview', async (route) => {
      const answer = await route.fetch();
      const nodes = ['est-1', 'est-2'].map((name, n) => ({
        name,
        host: name,
        alive: n === 0,
        lease_age: 1 + 20 * n,
        on_duty: n === 0,
      }));
      const text = (await answer.text()).replace(/"nodes":\[.*?\]/, `"nodes":${JSON.stringify(nodes)}`);
      await route.fulfill({ response: answer, body: text });
    });
    await window.go('');
    await page.getByRole('row', { name: 'est-2 down 21 s ago' }).waitFor();
    await window.close();
  });

  test('the overview counts rejected requests by code, and each count leads to its audit records', async () => {
    const window = await signedIn(world.tokens.auditor);
    const { page } = window;
    const rejections = {
      since: '2026-11-27T13:00:00Z',
      total: 163,
      codes: [
        { code: 'LOCKED_OUT', count: 151, audit_type: 'lockout.started' },
        { code: 'NAME_NOT_ALLOWED', count: 12, audit_type: 'certificate.denied' },
      ],
    };
    await page.route('**/admin/overview', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), rejections } });
    });
    await page.reload();
    const tile = page.locator('.tile', { hasText: 'Rejected, last 24 hours' });
    await tile.getByText('163', { exact: true }).waitFor();
    const links = await Promise.all((await tile.locator('.fine a').all()).map((anchor) => anchor.getAttribute('href')));
    expect(links).toEqual([
      expect.stringMatching(/audit\?type=lockout\.started&since=2026/) as string,
      expect.stringMatching(/audit\?type=certificate\.denied&since=2026/) as string,
    ]);
    await tile.getByText('151 LOCKED_OUT').click();
    await page.getByRole('heading', { name: 'Audit', exact: true }).waitFor();
    await window.close();
  });

  test('the script has at most 90 kB, compressed', () => {
    const assets = join(ROOT, 'dist/console/assets');
    const scripts = readdirSync(assets).filter((name) => name.endsWith('.js.br'));
    expect(scripts.reduce((sum, name) => sum + statSync(join(assets, name)).size, 0)).toBeLessThan(90_000);
  });

  test('a session that has ended asks to sign in, and goes on where one was', async () => {
    const window = await signedIn(world.tokens.ra);
    await window.go('tokens?status=active');
    await window.context.clearCookies();
    await window.page.getByRole('link', { name: 'Certificates' }).click();
    await window.page.getByText('Your session has ended.').waitFor();
    await window.page.getByLabel('Administrator’s token').fill(world.tokens.ra);
    await window.page.keyboard.press('Enter');
    await window.page.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
    await window.close();
  });
});
