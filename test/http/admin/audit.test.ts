import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { AUDIT_TYPES, type AuditEvent } from '../../../src/audit/event.ts';
import { HASHED_FIELDS } from '../../../src/audit/hashed-fields.ts';
import { adminFixture, NOW } from './support.ts';

describe('GET /admin/audit', () => {
  it('shows the records, oldest first, as they are chained', async () => {
    const { call, store } = await adminFixture();
    await store.audit([
      { type: 'service.start', outcome: 'success' },
      {
        type: 'certificate.issued',
        outcome: 'success',
        subject: 'CN=d',
        address: '192.0.2.1',
        ca: 'devices',
        serial: '0a',
        request_id: 'r1',
        detail: 'x',
      },
    ]);
    const { items, next_cursor } = (await call('GET', '/admin/audit')).json();
    expect(next_cursor).toBeNull();
    expect(items.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(items[0]).toMatchObject({ type: 'service.start', outcome: 'success', time: new Date(NOW).toISOString() });
    expect(items[0]).not.toHaveProperty('ca');
    expect(items[1]).toMatchObject({ subject: 'CN=d', address: '192.0.2.1', ca: 'devices', serial: '0a', detail: 'x' });
    expect(items[1]?.prev_hash).toBe(items[0]?.hash);
    // What a reader needs to check the hash is in the answer.
    for (const record of items) {
      const order = 'seq time node type outcome subject address ca serial request_id detail stored prev_hash'.split(
        ' ',
      );
      const hashed = JSON.stringify(record, order);
      expect(createHash('sha256').update(hashed).digest('hex')).toBe(record.hash);
    }
  });

  it('shows every field that a record has, so that its hash can be checked', async () => {
    const { call, store } = await adminFixture();
    // Required: a new field belongs here, and into the description of the API.
    const event: Required<AuditEvent> = {
      type: 'certificate.issued',
      outcome: 'success',
      subject: 'CN=d',
      method: 'mtls',
      requester_issuer: 'CN=Maker',
      requester_sans: ['DNS:old.example.com'],
      address: '192.0.2.1',
      ca: 'devices',
      label: 'lab',
      serial: '0a',
      certificate_subject: 'CN=d',
      certificate_sans: ['DNS:new.example.com', 'IP:192.0.2.1'],
      certificate_not_after: '2027-01-01T00:00:00.000Z',
      authorized_names: '["MAA=",null,null]',
      revocation_reason: 'keyCompromise',
      invalidity_date: '2026-01-01T00:00:00.000Z',
      rescue_until: '2026-01-02T00:00:00.000Z',
      request_id: 'r1',
      operation: 'simpleenroll',
      renewal: true,
      requester: 'CN=e',
      device: 'd',
      device_key: 'k',
      device_required: true,
      device_enabled: true,
      token: 't',
      token_expires_at: '2027-01-01T00:00:00.000Z',
      reason: 'r',
      crl_number: 7,
      days: 30,
      holder: { state: 'late', sans: ['DNS:d'], device: null },
      count: 101,
      detail: 'x',
      archived: { first: 1, last: 7, hash: '0'.repeat(64) },
      checkpoint: { seq: 7, hash: '0'.repeat(64), signature: 'c2ln' },
      anchors: [{ node: 'node-2', seq: 7, hash: '0'.repeat(64) }],
    };
    await store.audit([event]);
    const [record] = (await call('GET', '/admin/audit')).json().items;
    expect(record).toMatchObject({ ...event, node: 'node-1' });
    const hashed = JSON.stringify(
      Object.fromEntries(HASHED_FIELDS.map((name) => [name, Reflect.get(record ?? {}, name) as unknown])),
    );
    expect(createHash('sha256').update(hashed).digest('hex')).toBe(record?.hash);
  });

  it('filters by type and by time, and pages', async () => {
    const { call, store, advance } = await adminFixture();
    for (let i = 0; i < 5; i++) {
      await store.audit([{ type: i % 2 === 0 ? 'auth.otp' : 'auth.mtls', outcome: 'failure', detail: String(i) }]);
      advance(60_000);
    }
    const details = async (query: string): Promise<unknown[]> =>
      (await call('GET', `/admin/audit?${query}`)).json().items.map(({ detail }) => detail);
    expect(await details('type=auth.otp')).toEqual(['0', '2', '4']);
    expect(await details(`since=${new Date(NOW + 120_000).toISOString()}`)).toEqual(['2', '3', '4']);
    expect(await details(`since=2026-11-21T13:03:00%2B01:00&type=auth.mtls`)).toEqual(['3']);
    const first = (await call('GET', '/admin/audit?limit=3&type=auth.otp')).json();
    expect(first.next_cursor).toBeNull();
    const page = (await call('GET', '/admin/audit?limit=2')).json();
    expect(page.items.map(({ detail }) => detail)).toEqual(['0', '1']);
    expect(await details(`limit=2&cursor=${encodeURIComponent(page.next_cursor ?? '')}`)).toEqual(['2', '3']);
  });

  it('knows every type of event that there is', async () => {
    const { call, store } = await adminFixture();
    for (const type of AUDIT_TYPES) {
      await store.audit([{ type, outcome: 'success' }]);
      const { items } = (await call('GET', `/admin/audit?type=${type}`)).json();
      expect(items).toMatchObject([{ type }]);
    }
  });
});
