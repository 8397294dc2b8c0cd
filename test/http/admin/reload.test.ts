/** POST /admin/reload answers with what changed, what needs a restart, or why it failed. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reload, ReloadOrder, ReloadReport } from '../../../src/config/diff.ts';
import { HIDDEN, shownConfig } from '../../../src/config/shown.ts';
import { configFolder, type ConfigFolder, toml } from '../../config/support.ts';
import { adminFixture, failure, NOW } from './support.ts';
import { ask, expectWholeBody } from './typed.ts';

const REPORT: ReloadReport = {
  changed: ['tls.certificate'],
  needsRestart: ['est.port'],
  certificates: [
    { use: 'tls', ca: '', subject: 'CN=est', serial: '0a', notAfter: NOW, isNew: true },
    { use: 'ca', ca: 'devices', subject: 'CN=CA', serial: '01', notAfter: NOW, isNew: false },
  ],
  warnings: [{ key: 'log.level', message: 'is loud' }],
  faults: [{ key: 'ca[lab].certificate', message: 'expired' }],
};

function recorded(outcome: Awaited<ReturnType<Reload>>): { readonly orders: ReloadOrder[]; readonly reload: Reload } {
  const orders: ReloadOrder[] = [];
  return {
    orders,
    reload: (order) => {
      orders.push(order);
      return Promise.resolve(outcome);
    },
  };
}

test.each([
  ['/admin/reload', false],
  ['/admin/reload?dry_run=false', false],
  ['/admin/reload?dry_run=true', true],
])('POST %s is in the audit log, unless it is a dry run', async (url, dryRun) => {
  const { orders, reload } = recorded({ ok: true, report: REPORT });
  const { call } = await adminFixture({ reload });
  const answer = await call('POST', url);
  const not_after = new Date(NOW).toISOString();
  expect(answer.statusCode).toBe(200);
  expectWholeBody(answer, {
    dry_run: dryRun,
    changed: ['tls.certificate'],
    needs_restart: ['est.port'],
    certificates: [
      { use: 'tls', ca: null, subject: 'CN=est', serial: '0a', not_after, new: true },
      { use: 'ca', ca: 'devices', subject: 'CN=CA', serial: '01', not_after, new: false },
    ],
    warnings: [{ key: 'log.level', message: 'is loud' }],
    faults: [{ key: 'ca[lab].certificate', message: 'expired' }],
  });
  expect(orders).toMatchObject([{ dryRun, by: { subject: 'test admin' } }]);
  const { items } = (await call('GET', '/admin/audit?type=admin.access')).json();
  expect(items.map(({ detail }) => detail)).toEqual(dryRun ? [] : ['POST /admin/reload: a reload']);
});

test('a reload that fails is 409 with the reason, and in the audit log', async () => {
  const { reload } = recorded({ ok: false, reason: 'est.toml: tls.certificate: is no certificate' });
  const { call } = await adminFixture({ reload });
  for (const [query, audited] of [
    ['?dry_run=true', 0],
    ['', 2],
  ] as const) {
    await call('POST', `/admin/reload${query}`);
    const { items } = (await call('GET', '/admin/audit?type=admin.access')).json();
    expect(items).toHaveLength(audited);
  }
  const answer = await call('POST', '/admin/reload');
  expect(failure(answer)).toMatchObject({
    statusCode: 409,
    code: 'RELOAD_FAILED',
    message: 'est.toml: tls.certificate: is no certificate',
  });
});

test.each(['/admin/reload?dry_run=perhaps', '/admin/reload?dry=true'])(
  'POST %s: 400, and nothing is reloaded',
  async (url) => {
    const { orders, reload } = recorded({ ok: true, report: REPORT });
    const { call } = await adminFixture({ reload });
    expect((await call('POST', url)).statusCode).toBe(400);
    expect(orders).toEqual([]);
  },
);

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const SECRET = 'not-to-be-shown-anywhere';

describe('GET /admin/configuration', () => {
  test('every key that has a value, with its default, whether a reload applies it, and no secret', async () => {
    const token_hash = `sha256:${'5'.repeat(64)}`;
    const { config } = await folder.load(
      toml(`
[admin.bearer_token]
enabled = true
tokens = [{ token_hash = "${token_hash}", description = "ada", roles = ["ra"] }]
[otp]
hash_algorithm = "sha256-hmac"
hmac_key_env = "KEY"
`),
      { KEY: SECRET.repeat(2) },
    );
    const configuration = shownConfig(config);
    const lastReload = { at: NOW, ok: true };
    const shown = await ask(await adminFixture({ configuration, lastReload }), 'get', '/admin/configuration', 200);
    expect(shown.reload).toEqual({ at: '2026-11-21T12:00:00.000Z', ok: true });
    expect(shown.keys).toEqual(
      expect.arrayContaining([
        { key: 'admin.port', value: 9444, live: false },
        { key: 'ca[devices].label', value: 'devices', live: true },
        { key: 'admin.bearer_token.tokens[0].token_hash', value: HIDDEN, live: true },
        { key: 'admin.bearer_token.tokens[0].description', value: 'ada', live: true },
        { key: 'admin.bearer_token.tokens[0].roles', value: ['ra'], live: true },
        { key: 'otp.hmac_key', value: HIDDEN, live: false },
        { key: 'log.level', value: 'info', live: true },
      ]),
    );
    const text = JSON.stringify(shown);
    for (const secret of [SECRET, Buffer.from(SECRET).toString('base64').slice(0, 20), '5'.repeat(64)])
      expect(text).not.toContain(secret);
  });
});
