/** One page of everything about a device, a requester or a request. */
import { describe, expect, test } from 'vitest';
import { deviceRow, event, otpRow, requestRow } from '../../store/rows.ts';
import { issue } from '../../store/contract/support.ts';
import { adminFixture, failure } from './support.ts';
import { ask } from './typed.ts';

describe('GET /admin/history', () => {
  test('of a request: what was queued, the token it was made with, its certificate, its records', async () => {
    const api = await adminFixture();
    const token = otpRow({ client_id: 'dev-1' });
    await api.store.insertOtp(token, []);
    const request = requestRow({ otp_id: token.id, requester: 'dev-1' });
    await api.store.queueRequest(request, null, [
      event('request.received', { request_id: request.id }),
      event('request.queued', { request_id: request.id }),
    ]);
    await api.store.audit([event('request.queued', { request_id: 'another' })]);
    const found = await ask(api, 'get', '/admin/history', 200, { query: { request_id: request.id } });
    expect(found).toMatchObject({ certificates: [], tokens: [{ id: token.id }], requests: [{ id: request.id }] });
    expect(found.events.map(({ type }) => type)).toEqual(['request.queued', 'request.received']);
    const certificate = await issue(api.store);
    const other = await ask(api, 'get', '/admin/history', 200, { query: { request_id: certificate.request_id } });
    expect(other).toMatchObject({
      certificates: [{ serial: certificate.serial }],
      tokens: [],
      requests: [],
      events: [],
    });
  });

  test('of a request with what came of its certificate later, which other calls did', async () => {
    const api = await adminFixture();
    const { ca, serial, request_id } = await issue(api.store);
    await api.store.audit([event('certificate.issued', { request_id, ca, serial })]);
    await api.store.audit([event('certificate.revoked', { request_id: 'another', ca, serial })]);
    await api.store.audit([event('certificate.revoked', { request_id: 'another', ca, serial: 'ff' })]);
    const { events } = await ask(api, 'get', '/admin/history', 200, { query: { request_id } });
    expect(events.map(({ type }) => type)).toEqual(['certificate.revoked', 'certificate.issued']);
  });

  test('of a requester: the whole name, and nobody whose name has it in it', async () => {
    const api = await adminFixture();
    for (const requester of ['dev-1', 'dev-11']) {
      await issue(api.store, { requester });
      await api.store.insertOtp(otpRow({ client_id: requester }), []);
      await api.store.queueRequest(requestRow({ requester, id: requester, recognition: requester }), null, []);
      await api.store.audit([
        event('auth.otp', { subject: requester }),
        event('certificate.issued', { subject: requester }),
      ]);
    }
    const found = await ask(api, 'get', '/admin/history', 200, { query: { requester: 'dev-1' } });
    expect(found.certificates.map(({ requester }) => requester)).toEqual(['dev-1']);
    expect(found.tokens.map(({ client_id }) => client_id)).toEqual(['dev-1']);
    expect(found.requests.map(({ requester }) => requester)).toEqual(['dev-1']);
    expect(found.events.map(({ type, subject }) => [type, subject])).toEqual([
      ['certificate.issued', 'dev-1'],
      ['auth.otp', 'dev-1'],
    ]);
  });

  test('of a device, also after it was deleted', async () => {
    const api = await adminFixture();
    const row = deviceRow({ id: 'dev-1' });
    await api.store.putDevices([{ row, events: [event('device.created')] }], 'create');
    await issue(api.store, { device: 'dev-1', device_key: row.key });
    await api.store.insertOtp(otpRow({ client_id: 'dev-1' }), []);
    const found = await ask(api, 'get', '/admin/history', 200, { query: { device: 'dev-1' } });
    expect(found).toMatchObject({
      certificates: [{ device: 'dev-1' }],
      tokens: [{ client_id: 'dev-1' }],
      requests: [],
    });
    expect(found.events.map(({ type }) => type)).toEqual(['device.created']);
    await api.store.deleteDevice(row.key, []);
    const after = await ask(api, 'get', '/admin/history', 200, { query: { device: 'dev-1' } });
    expect(after).toEqual({ ...found, events: [] });
  });

  test.each(['', '?device=a&requester=b', '?serial=01'])('%s: 400', async (query) => {
    expect(failure(await (await adminFixture()).call('GET', `/admin/history${query}`)).code).toBe('FIELD_INVALID');
  });
});
