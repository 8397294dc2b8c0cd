import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Ca } from '../../../src/ca/router.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { ask, expectBody } from './typed.ts';
import { adminFixture, ailingCa, DAY, failure, fileCa } from './support.ts';

describe('GET /admin/cas', () => {
  const folder = temporaryFolder();
  let devices: Ca;
  let lab: Ca;
  beforeAll(async () => {
    devices = await fileCa(folder, 'devices', true);
    lab = await fileCa(folder, 'lab');
  });
  afterAll(() => folder.remove());

  it('shows label, default, driver, subject, not_after, days_left, health, certificate and chain', async () => {
    const api = await adminFixture({ cas: [devices, lab], start: Date.now() });
    const { call, advance } = api;
    const body = await ask(api, 'get', '/admin/cas/{label}', 200, { path: { label: 'devices' } });
    expect(body).toEqual({
      label: 'devices',
      default: true,
      driver: 'file',
      subject: 'CN=devices,O=Estuary',
      not_after: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/) as string,
      days_left: 3649,
      health: 'ok',
      certificate: expect.stringContaining('BEGIN CERTIFICATE') as string,
      chain: [expect.anything(), expect.anything()],
    });
    const chain = body.chain.map((pem) => new X509Certificate(pem));
    expect(chain[0]?.raw).toEqual(new X509Certificate(body.certificate ?? '').raw);
    expect(new Date(body.not_after ?? '')).toEqual(new Date(chain[0]?.validTo ?? ''));
    const root = chain[1];
    expect(root !== undefined && chain[0]?.checkIssued(root) && root.checkIssued(root)).toBe(true);
    advance(3650 * DAY);
    expectBody(await call('GET', '/admin/cas/devices'), { days_left: -1 });
  });

  it('lists all CAs in the order of the configuration, in pages', async () => {
    const api = await adminFixture({ cas: [devices, lab], start: Date.now() });
    const all = await ask(api, 'get', '/admin/cas', 200);
    expect(all.items.map(({ label }) => label)).toEqual(['devices', 'lab']);
    expect(all.next_cursor).toBeNull();
    const first = await ask(api, 'get', '/admin/cas', 200, { query: { limit: 1 } });
    expect(first.items).toEqual(all.items.slice(0, 1));
    const second = await ask(api, 'get', '/admin/cas', 200, { query: { limit: 1, cursor: first.next_cursor ?? '' } });
    expect(second).toEqual({ items: all.items.slice(1), next_cursor: null });
  });

  it('404 for a label that is not configured', async () => {
    const { call } = await adminFixture({ cas: [devices, lab] });
    expect(failure(await call('GET', '/admin/cas/nowhere')).statusCode).toBe(404);
  });

  it('shows a CA that is down as down, and one whose certificate is not known yet without it', async () => {
    const cas = [
      devices,
      ailingCa('throws', () => Promise.reject(new Error('HSM gone'))),
      ailingCa('weak', () => Promise.resolve({ health: 'degraded', detail: 'one replica of two' })),
    ];
    const { items } = await ask(await adminFixture({ cas, start: Date.now() }), 'get', '/admin/cas', 200);
    expect(items.map(({ label, health }) => [label, health])).toEqual([
      ['devices', 'ok'],
      ['throws', 'down'],
      ['weak', 'degraded'],
    ]);
    expect(items[1]).toMatchObject({ subject: null, not_after: null, days_left: null, certificate: null, chain: [] });
  });
});
