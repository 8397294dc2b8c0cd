/** Renewal information and campaigns, seen by clients and administrators. */
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, type ClientIdentity, Estuary } from '../support/estuary.ts';

const key = makeKey();
let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => Object.assign(caSection(config), { renewal: { start: 0.5, end: 0.75, retry_after: 600 } }),
  });
});
afterAll(() => estuary.stop());

/** RFC 9773 §4.1, of the DER by hand. */
function idOf({ cert }: ClientIdentity): string {
  const { raw, serialNumber } = new X509Certificate(cert);
  const aki = parseCertificate(raw).authorityKeyIdentifier ?? Buffer.alloc(0);
  const serial = Buffer.from(serialNumber, 'hex');
  const padded = (serial[0] ?? 0) > 127 ? Buffer.concat([Buffer.alloc(1), serial]) : serial;
  return `${aki.toString('base64url')}.${padded.toString('base64url')}`;
}

async function windowOf(who: ClientIdentity, label = ''): Promise<{ start: number; end: number }> {
  const answer = await estuary.est(`${label}renewal-info/${idOf(who)}`);
  expect(answer.status, answer.text).toBe(200);
  expect(answer.headers['content-type']).toBe('application/json');
  const { suggestedWindow } = JSON.parse(answer.text) as { suggestedWindow: { start: string; end: string } };
  return { start: Date.parse(suggestedWindow.start), end: Date.parse(suggestedWindow.end) };
}

const renew = (who: ClientIdentity, name: string) =>
  estuary.enroll(onTheWire(simpleCsr(key, name)), { path: 'simplereenroll', client: who });
const serialOf = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();

test('the window is a part of the lifetime, in plain JSON without authentication', async () => {
  const who = await estuary.enrolled(key);
  const { start, end } = await windowOf(who);
  const { validFromDate, validToDate } = new X509Certificate(who.cert);
  const lifetime = validToDate.getTime() - validFromDate.getTime();
  expect(Math.abs(start - (validFromDate.getTime() + 0.5 * lifetime))).toBeLessThan(2000);
  expect(Math.abs(end - (validFromDate.getTime() + 0.75 * lifetime))).toBeLessThan(2000);
  const answer = await estuary.est(`devices/renewal-info/${idOf(who)}`);
  expect([answer.status, answer.headers['retry-after']]).toEqual([200, '600']);
  expect(answer.headers['content-transfer-encoding']).toBeUndefined();
});

test('404 for a certificate that is unknown, of another label, or revoked; 405 for another method', async () => {
  const who = await estuary.enrolled(key);
  const id = idOf(who);
  const [aki, serial] = id.split('.');
  for (const path of [
    `lab/renewal-info/${id}`,
    `renewal-info/${aki ?? ''}.AQ`,
    `renewal-info/AAAA.${serial ?? ''}`,
    `renewal-info/${id}=`,
    'renewal-info/none',
    'renewal-info/',
    'renewal-info',
  ])
    expect((await estuary.est(path)).status, path).toBe(404);
  expect((await estuary.est(`renewal-info/${id}`, { method: 'POST', body: '' })).status).toBe(405);
  await estuary.admin('POST', `/admin/certificates/${serialOf(who)}/revoke`);
  expect((await estuary.est(`renewal-info/${id}`)).status).toBe(404);
});

test('a campaign moves the windows of matching certificates before its end, and counts until it is ended', async () => {
  const fleet = ['press-1', 'press-2', 'press-3', 'other-1'];
  const [one, two, three, other] = await Promise.all(fleet.map((name) => estuary.enrolled(key, name)));
  if (one === undefined || two === undefined || three === undefined || other === undefined) throw new Error('four');
  const before = await windowOf(other);
  const by = Date.now() + 3_600_000;
  const filter = { ca: 'devices', subject: 'press' };
  const body = { filter, by: new Date(by).toISOString(), reason: 'a new root' };
  const dry = await estuary.admin('POST', '/admin/renewals?dry_run=true', body);
  expect([dry.status, dry.json]).toMatchObject([200, { filter, total: 3, waiting: 3, overdue: 0 }]);
  expect((await estuary.admin('GET', '/admin/renewals')).json).toMatchObject({ items: [] });
  const started = await estuary.admin('POST', '/admin/renewals', body);
  expect([started.status, started.json]).toMatchObject([201, { filter, by: body.by, reason: 'a new root' }]);
  const id = String(started.json['id']);
  for (const who of [one, two, three]) {
    const { start, end } = await windowOf(who);
    expect([start >= by - 3_610_000, end <= by, end > start]).toEqual([true, true, true]);
  }
  expect(await windowOf(other)).toEqual(before);

  expect((await renew(one, 'press-1')).status).toBe(200);
  expect((await renew(two, 'press-9')).status).toBe(403);
  const progress = async () => (await estuary.admin('GET', `/admin/renewals/${id}`)).json;
  expect(await progress()).toMatchObject({ total: 3, replaced: 1, failed: 1, waiting: 1, overdue: 0 });
  const { json } = await estuary.admin('GET', '/admin/renewals');
  expect(json).toMatchObject({ items: [{ id, filter }], next_cursor: null });
  expect((await estuary.admin('DELETE', `/admin/renewals/${id}`)).status).toBe(204);
  expect((await estuary.admin('GET', `/admin/renewals/${id}`)).status).toBe(404);
  expect(await windowOf(two)).not.toMatchObject({ end: by });
});

test('a campaign needs an end in the future and a filter', async () => {
  const start = (body: object) => estuary.admin('POST', '/admin/renewals', body);
  const by = new Date(Date.now() + 60_000).toISOString();
  const past = new Date(Date.now() - 1000).toISOString();
  for (const body of [
    { filter: {}, by },
    { filter: { ca: 'devices' }, by: past },
    { filter: { ca: 'devices' } },
    { by },
  ])
    expect((await start(body)).status, JSON.stringify(body)).toBe(400);
  expect((await start({ filter: { status: 'revoked', ca: 'devices' }, by })).status).toBe(400);
});
