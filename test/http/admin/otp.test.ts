import { describe, expect, it } from 'vitest';
import { adminFixture, DAY, failure, NOW } from './support.ts';
import { expectBody, expectWholeBody } from './typed.ts';

const at = (ms: number): string => new Date(ms).toISOString();

describe('POST /admin/otp', () => {
  it('answers 201 with exactly id, token, client_id, created_at, expires_at and max_uses', async () => {
    const { call } = await adminFixture();
    const expires_at = at(NOW + DAY);
    const response = await call('POST', '/admin/otp', { client_id: 'device-1', max_uses: 3, expires_at });
    expect(response.statusCode).toBe(201);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.headers['cache-control']).toBe('no-store');
    const body = response.json();
    expect(body).toEqual({
      id: expect.stringMatching(/./) as string,
      token: expect.stringMatching(/^.{20,}$/) as string,
      client_id: 'device-1',
      created_at: at(NOW),
      expires_at,
      max_uses: 3,
    });
  });

  it('takes max_uses and the time to live from the configuration when the request names none', async () => {
    const { call } = await adminFixture({ settings: { otp: { max_uses: 7, default_ttl: 600 } } });
    const body = (await call('POST', '/admin/otp', { client_id: 'd' })).json();
    expect(body).toMatchObject({ max_uses: 7, created_at: at(NOW), expires_at: at(NOW + 600_000) });
  });

  it.each([
    ['2026-11-22T00:00:00Z', '2026-11-22T00:00:00.000Z'],
    ['2026-11-22T00:00:00.123Z', '2026-11-22T00:00:00.123Z'],
    ['2026-11-22T02:30:00+02:30', '2026-11-22T00:00:00.000Z'],
    ['2026-11-21T19:00:00-05:00', '2026-11-22T00:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('takes expires_at %s and answers it in UTC with Z', async (given, answered) => {
    const { call } = await adminFixture();
    const response = await call('POST', '/admin/otp', { client_id: 'd', expires_at: given });
    expectBody(response, { expires_at: answered });
  });

  it('takes the bounds: one use and a million, a second and ten years', async () => {
    const { call } = await adminFixture();
    for (const body of [
      { client_id: 'd', max_uses: 1 },
      { client_id: 'd', max_uses: 1_000_000 },
      { client_id: 'd', expires_at: at(NOW + 1000) },
      { client_id: 'd', expires_at: at(NOW + 3650 * DAY) },
      { client_id: 'x'.repeat(255) },
      { client_id: 'Gerät 1 (Ω)' },
    ])
      expect((await call('POST', '/admin/otp', body)).statusCode, JSON.stringify(body)).toBe(201);
  });

  it('limits a token to a CA that is configured', async () => {
    const { call } = await adminFixture();
    const { id } = (await call('POST', '/admin/otp', { client_id: 'd', ca: 'devices' })).json();
    expectBody(await call('GET', `/admin/otp/${id}`), { ca: 'devices' });
    expect(failure(await call('POST', '/admin/otp', { client_id: 'd', ca: 'nowhere' }))).toEqual({
      statusCode: 400,
      code: 'FIELD_INVALID',
      message: 'ca must be the label of a configured CA',
    });
  });

  it('answers 409 while one-time passwords are switched off: nobody could use the token', async () => {
    const { call } = await adminFixture({ settings: { otp: { enabled: false } } });
    expect(failure(await call('POST', '/admin/otp', { client_id: 'd' }))).toMatchObject({
      statusCode: 409,
      code: 'OTP_DISABLED',
    });
  });

  it('commits otp.created and admin.access with who, from where and what', async () => {
    const { call, store } = await adminFixture();
    const { id } = (await call('POST', '/admin/otp', { client_id: 'device-1' })).json();
    const { items } = await store.listAudit({ limit: 100 });
    expect(items.map(({ type }) => type).sort()).toEqual(['admin.access', 'otp.created']);
    expect(items.find(({ type }) => type === 'admin.access')).toMatchObject({
      outcome: 'success',
      subject: 'test admin',
      address: '127.0.0.1',
      detail: 'POST /admin/otp: token for device-1',
    });
    expect(id).not.toBe('');
  });
});

describe('GET and DELETE /admin/otp', () => {
  it('shows a token without the token or anything derived from it', async () => {
    const { call, logged } = await adminFixture();
    const created = (await call('POST', '/admin/otp', { client_id: 'd' })).json();
    const one = await call('GET', `/admin/otp/${created.id}`);
    expectWholeBody(one, {
      id: created.id,
      client_id: 'd',
      ca: null,
      created_at: at(NOW),
      expires_at: at(NOW + DAY),
      max_uses: 1,
      uses: 0,
      status: 'active',
    });
    const list = await call('GET', '/admin/otp');
    expectWholeBody(list, { items: [one.json()], next_cursor: null });
    const audit = await call('GET', '/admin/audit');
    for (const text of [one.body, list.body, audit.body, logged()]) {
      expect(text).not.toContain(created.token);
      expect(text).not.toContain('hmac-sha256:');
      expect(text).not.toContain('selector');
    }
  });

  it('tells active, consumed, expired and revoked tokens apart', async () => {
    const { call, store, advance } = await adminFixture();
    const make = async (body: object): Promise<string> =>
      (await call('POST', '/admin/otp', { client_id: 'd', ...body })).json().id;
    const status = async (id: string): Promise<unknown> => (await call('GET', `/admin/otp/${id}`)).json().status;
    const [active, used, old, dead] = [
      await make({ expires_at: at(NOW + DAY) }),
      await make({ expires_at: at(NOW + DAY) }),
      await make({ expires_at: at(NOW + 1000) }),
      await make({ expires_at: at(NOW + 1000) }),
    ];
    await store.reserve(
      {
        request_id: 'r',
        instance: 'i',
        ca: 'devices',
        label: null,
        serial: '0a',
        requester: 'otp:d',
        operation: 'simpleenroll',
        subject: 'CN=d',
        spki_sha256: null,
        device_key: null,
        required_device: null,
        otp_id: used,
        created_at: NOW,
      },
      [],
    );
    await call('DELETE', `/admin/otp/${dead}`);
    expect(await status(old)).toBe('active');
    advance(1000);
    expect(await Promise.all([active, used, old, dead].map(status))).toEqual([
      'active',
      'consumed',
      'expired',
      'revoked',
    ]);
  });

  it('DELETE answers 204 without a body, and the token is dead at once; again is 204 too', async () => {
    const { call, store } = await adminFixture();
    const { id } = (await call('POST', '/admin/otp', { client_id: 'd' })).json();
    for (const time of ['first', 'second']) {
      const response = await call('DELETE', `/admin/otp/${id}`);
      expect(response.statusCode, time).toBe(204);
      expect(response.body).toBe('');
    }
    expect((await store.getOtp(id))?.revoked_at).toBe(NOW);
    const { items } = await store.listAudit({ limit: 100, type: 'otp.revoked' });
    expect(items).toMatchObject([{ subject: 'd', address: '127.0.0.1', detail: `token ${id}` }]);
    const access = (await store.listAudit({ limit: 100, type: 'admin.access' })).items.map(({ detail }) => detail);
    expect(access).toContain(`DELETE /admin/otp/:id: token ${id} revoked`);
  });

  it('an unknown token is 404 OTP_NOT_FOUND, whatever its id looks like', async () => {
    const { call } = await adminFixture();
    for (const id of ['nope', '00', '%00', 'a'.repeat(300), '..%2f..', encodeURIComponent("' OR 1=1 --")])
      for (const method of ['GET', 'DELETE'])
        expect(failure(await call(method, `/admin/otp/${id}`)), id).toMatchObject({
          statusCode: 404,
          code: 'OTP_NOT_FOUND',
        });
  });
});
