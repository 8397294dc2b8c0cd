/** Revocation in bulk by filter. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import { unavailable } from '../../../src/errors.ts';
import { event, certificateRow, reservation } from '../../store/rows.ts';
import { adminFixture, ailingCa, DAY, failure, NOW, type AdminFixture } from './support.ts';
import { expectBody, expectWholeBody } from './typed.ts';

let api: AdminFixture;
let told: string[];
let down: string | undefined;
beforeEach(async () => {
  told = [];
  down = undefined;
  const one = ailingCa('devices', () => Promise.resolve({ health: 'ok' }), [], true);
  const revoke = ({ serial }: { serial: string }) => {
    if (serial === down) return Promise.reject(unavailable('CA_UNAVAILABLE', 'the CA is not available'));
    told.push(serial);
    return Promise.resolve();
  };
  api = await adminFixture({ cas: [new Ca(one.config, { ...one.driver, revoke })] });
  for (const [index, subject] of ['CN=press-1', 'CN=press-2', 'CN=lathe-1', 'CN=press-3'].entries())
    await issue(subject, `0${index + 1}`);
  await issue('CN=press-old', '09', NOW - DAY);
});

async function issue(subject: string, serial: string, not_after = NOW + DAY): Promise<void> {
  const held = reservation({ ca: 'devices', serial, subject });
  await api.store.reserve(held, []);
  await api.store.recordCertificate(certificateRow(held, { not_after }), [event('certificate.issued')]);
}

const call = (body: unknown) => api.call('POST', '/admin/certificates/revoke', body);
const revokedOnes = async (): Promise<string[]> =>
  (await api.store.listCertificates({ status: 'revoked', limit: 100 }, NOW)).items.map(({ serial }) => serial);
const filter = { subject: 'press' };

describe('POST /admin/certificates/revoke', () => {
  test('a dry run counts the valid ones, and then so many are revoked, each of them audited', async () => {
    expectWholeBody(await call({ filter, dry_run: true }), { count: 3, revoked: 0, remaining: 3 });
    expect(await revokedOnes()).toEqual([]);
    const done = await call({ filter, count: 3, reason: 'keyCompromise' });
    expect(done.statusCode).toBe(200);
    expectWholeBody(done, { count: 3, revoked: 3, remaining: 0 });
    expect(await revokedOnes()).toEqual(['01', '02', '04']);
    expect(told.toSorted()).toEqual(['01', '02', '04']);
    const { items } = await api.store.listAudit({ limit: 100, type: 'certificate.revoked' });
    expect(items.map(({ serial, subject }) => [serial, subject])).toEqual(
      ['01', '02', '04'].map((serial) => [serial, 'test admin']),
    );
    expect(items[0]?.detail).toContain('keyCompromise');
    expectWholeBody(await call({ filter, count: 0 }), { count: 0, revoked: 0, remaining: 0 });
  });

  test.each([
    ['fewer', 2],
    ['more', 4],
    ['none', 0],
  ])('%s were meant: 409, and nothing is revoked', async (_, count) => {
    expect(failure(await call({ filter, count }))).toMatchObject({ statusCode: 409, code: 'COUNT_MISMATCH' });
    expect(await revokedOnes()).toEqual([]);
  });

  test.each<[string, object, RegExp]>([
    ['no filter', { count: 4 }, /^filter is required/],
    ['an empty filter', { filter: {}, count: 4 }, /^filter must have a criterion in addition to status/],
    [
      'a status alone',
      { filter: { status: 'valid' }, count: 4 },
      /^filter must have a criterion in addition to status/,
    ],
    ['an empty part of a name', { filter: { subject: '' }, count: 4 }, /^filter/],
    ['those that are revoked', { filter: { ...filter, status: 'revoked' }, count: 0 }, /^filter\.status must be/],
    ['no count', { filter }, /^count is required/],
    ['a dry run that is not one', { filter, dry_run: false }, /^count is required/],
    ['a negative count', { filter, count: -1 }, /^count must be 0 or more/],
    ['an unknown filter', { filter: { cn: 'x' }, count: 1 }, /"filter\.cn"/],
    ['an unknown field', { filter, count: 1, force: true }, /"force"/],
    ['an unknown reason', { filter, count: 1, reason: 'bored' }, /^reason must be one of/],
    ['a date to come', { filter, count: 3, invalidity_date: '2999-01-01T00:00:00Z' }, /^invalidity_date must not be/],
  ])('400 that names the field: %s', async (_, body, message) => {
    const answer = failure(await call(body));
    expect(answer.statusCode).toBe(400);
    expect(answer.message).toMatch(message);
    expect(await revokedOnes()).toEqual([]);
  });

  test('expired ones where they are asked for', async () => {
    const expired = { ...filter, status: 'expired' };
    expectWholeBody(await call({ filter: expired, count: 1 }), { count: 1, revoked: 1, remaining: 0 });
    expectBody(await call({ filter: expired, dry_run: true }), { count: 0 });
  });

  test('a CA that cannot be told: 503, what came before is revoked, and the next dry run tells what is left', async () => {
    for (let index = 10; index < 60; index++) await issue(`CN=press-${index}`, String(index));
    down = '59';
    expect(failure(await call({ filter, count: 53 })).statusCode).toBe(503);
    const done = (await revokedOnes()).length;
    expect(done).toBeGreaterThanOrEqual(20);
    expectBody(await call({ filter, dry_run: true }), { count: 53 - done });
  });
});

describe('PATCH /admin/otp/{id}', () => {
  const later = new Date(NOW + 10 * DAY).toISOString();
  const make = async (): Promise<string> => (await api.call('POST', '/admin/otp', { client_id: 'press-1' })).json().id;

  test('changes when a token ends, one that has expired too, and says so in the audit log', async () => {
    const id = await make();
    api.advance(2 * DAY);
    expectBody(await api.call('GET', `/admin/otp/${id}`), { status: 'expired' });
    const changed = await api.call('PATCH', `/admin/otp/${id}`, { expires_at: later });
    expect(changed.statusCode).toBe(200);
    expectBody(changed, { id, expires_at: later, status: 'active' });
    expectWholeBody(await api.call('GET', `/admin/otp/${id}`), changed.json());
    const { items } = await api.store.listAudit({ limit: 10, type: 'otp.changed' });
    expect(items).toMatchObject([{ subject: 'press-1', detail: `token ${id} until ${later}` }]);
  });

  test('a revoked one stays dead: 409; an unknown one is 404', async () => {
    const id = await make();
    await api.call('DELETE', `/admin/otp/${id}`);
    expect(failure(await api.call('PATCH', `/admin/otp/${id}`, { expires_at: later })).code).toBe('OTP_REVOKED');
    expect(failure(await api.call('PATCH', '/admin/otp/1', { expires_at: later })).code).toBe('OTP_NOT_FOUND');
  });

  test.each<[object, RegExp]>([
    [{}, /^expires_at is required/],
    [{ expires_at: 'soon' }, /^expires_at must be an ISO 8601/],
    [{ expires_at: new Date(NOW).toISOString() }, /^expires_at must be in the future/],
    [{ expires_at: '2999-01-01T00:00:00Z' }, /^expires_at must be at most ten years/],
    [{ expires_at: later, max_uses: 2 }, /"max_uses"/],
  ])('400 that names the field: %j', async (body, message) => {
    const answer = failure(await api.call('PATCH', `/admin/otp/${await make()}`, body));
    expect([answer.statusCode, answer.message]).toEqual([400, expect.stringMatching(message)]);
  });
});
