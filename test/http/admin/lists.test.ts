import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Ca } from '../../../src/ca/router.ts';
import { parseCsv } from '../../../src/http/admin/bulk/csv.ts';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import { issue } from '../../store/support.ts';
import { deviceRow, otpRow, requestRow, reservation } from '../../store/rows.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { adminFixture, bearer, DAY, failure, fileCa, issueFrom, NOW, type AdminFixture } from './support.ts';

const time = (ms: number): string => new Date(ms).toISOString();
const LISTS = ['otp', 'certificates', 'requests', 'devices', 'lockouts', 'audit', 'cas'];
const AS_CSV = LISTS.filter((list) => list !== 'cas');

/** Of any list. */
interface Page {
  readonly items: readonly Record<string, unknown>[];
  readonly next_cursor: string | null;
}

describe('every list', () => {
  let close: () => Promise<void>;
  let api: AdminFixture;

  beforeAll(async () => {
    api = await adminFixture({ onEnd: (cleanUp) => (close = cleanUp) });
    const { store } = api;
    const policy = { max_failures: 1, failure_window: 300, lockout_duration: 900 };
    for (const n of [1, 2, 3]) {
      const id = `device-${n}`;
      await store.insertOtp(otpRow({ id: `token-${n}`, client_id: id, expires_at: NOW + DAY }), []);
      await issue(store, { subject: `CN=${id}`, sans: [`DNS:${id}.example`, `IP:192.0.2.${n}`], not_after: NOW + DAY });
      await store.queueRequest(requestRow({ id: `request-${n}`, subject: `CN=${id}` }), null, []);
      await store.putDevices([{ row: deviceRow({ id }), events: [] }], 'create');
      for (let i = 0; i < 2; i++) await store.recordFailure([`address:192.0.2.${n}`], policy, NOW + n * 1000, []);
      await store.audit([{ type: 'auth.otp', outcome: 'failure', subject: `=HYPERLINK("x","${n}")` }]);
    }
  });
  afterAll(() => close());

  const list = async (path: string): Promise<Page> => {
    const response = await api.call('GET', `/admin/${path}`);
    expect(response.statusCode, `${path}: ${response.body}`).toBe(200);
    return response.json() as Page;
  };
  const pages = async (name: string, query: string): Promise<Page['items']> => {
    const items: Record<string, unknown>[] = [];
    let cursor = '';
    do {
      const page = await list(`${name}?limit=2${query}${cursor}`);
      items.push(...page.items);
      cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
    } while (cursor !== '');
    return items;
  };

  it.each(LISTS)('%s: oldest first unless order=desc, page by page', async (name) => {
    const { items, next_cursor } = await list(`${name}?limit=1000`);
    expect(items.length).toBeGreaterThanOrEqual(name === 'cas' ? 1 : 3);
    expect(next_cursor).toBeNull();
    expect(await pages(name, '')).toEqual(items);
    expect(await pages(name, '&order=asc')).toEqual(items);
    expect(await pages(name, '&order=desc')).toEqual(items.toReversed());
  });

  it.each([...LISTS, 'fleet', 'renewals', 'notifications'])('%s: total=true counts, on every page', async (name) => {
    // The fleet may still be counting.
    await vi.waitFor(async () => {
      const { items, ...rest } = await list(`${name}?limit=1000`);
      expect(rest).toEqual({ next_cursor: null });
      const total = { count: items.length, exact: true };
      const { next_cursor, ...first } = await list(`${name}?limit=1&total=true&order=desc`);
      expect(first).toMatchObject({ total });
      if (next_cursor !== null)
        expect(await list(`${name}?limit=1&total=true&order=desc&cursor=${next_cursor}`)).toMatchObject({ total });
    }, 10_000);
  });

  it.each(LISTS)('%s: an unknown parameter and a bad value are 400 and named', async (name) => {
    for (const [query, names] of [
      ['order=newest', 'order'],
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['limit=x', 'limit'],
      ['total=many', 'total'],
      ['cursor=nope', 'cursor'],
      ['color=blue', 'color'],
    ] as const) {
      const answer = failure(await api.call('GET', `/admin/${name}?${query}`));
      expect(answer.statusCode, query).toBe(400);
      expect(answer.message, query).toContain(names);
    }
  });

  it.each(AS_CSV)('%s: with Accept: text/csv the whole selection, a line each (RFC 4180)', async (name) => {
    const { items } = await list(`${name}?limit=1000&order=desc`);
    const response = await api.raw('GET', `/admin/${name}?order=desc&limit=1`, { ...bearer, accept: 'text/csv' });
    expect(response.statusCode, response.body).toBe(200);
    expect(response.headers['content-type']).toMatch(/^text\/csv/);
    expect(response.headers['vary']).toBe('accept');
    expect(response.body.endsWith('\r\n')).toBe(true);
    const [header, ...rows] = [...parseCsv(response.body)].map(({ fields }) => fields);
    const key = { otp: 'id', certificates: 'serial', requests: 'id', devices: 'id', lockouts: 'key', audit: 'seq' }[
      name
    ];
    const column = header?.indexOf(String(key)) ?? -1;
    expect(column).toBeGreaterThanOrEqual(0);
    expect(rows.map((row) => row[column])).toEqual(items.map((item) => String(item[String(key)])));
    expect(rows.every((row) => row.length === header?.length)).toBe(true);
  });

  it('a table has every field of the records, lists as one text, and no formula', async () => {
    const table = async (path: string): Promise<Record<string, string | undefined>[]> => {
      const response = await api.raw('GET', `/admin/${path}`, { ...bearer, accept: 'text/csv' });
      const [header = [], ...rows] = [...parseCsv(response.body)].map(({ fields }) => fields);
      return rows.map((row) => Object.fromEntries(header.map((name, n) => [name, row[n]])));
    };
    const [certificate] = await table('certificates?subject=device-2');
    const [record] = (await list('certificates?subject=device-2')).items;
    expect(Object.keys(certificate ?? {})).toEqual(expect.arrayContaining(Object.keys(record ?? {})));
    expect(certificate).toMatchObject({ sans: 'DNS:device-2.example IP:192.0.2.2', revoked_at: '', status: 'valid' });
    expect((await table('audit?type=auth.otp')).map(({ subject }) => subject)).toEqual([
      `'=HYPERLINK("x","1")`,
      `'=HYPERLINK("x","2")`,
      `'=HYPERLINK("x","3")`,
    ]);
  });

  it.each([
    ['otp?client_id=device-2', ['device-2']],
    ['otp?client_id=device', []],
    ['otp?status=active&order=desc', ['device-3', 'device-2', 'device-1']],
    ['otp?status=revoked', []],
  ])('%s', async (path, found) => {
    expect((await list(path)).items.map((item) => item['client_id'])).toEqual(found);
  });

  it.each([
    ['requests?status=pending', 3],
    ['requests?status=issued', 0],
    ['requests?ca=devices&status=pending', 3],
    ['requests?ca=lab', 0],
    ['requests?requester=device-1', 3],
    ['requests?device=device-1', 0],
    ['audit?subject=hyperlink', 3],
    ['audit?subject=2%22)', 1],
    [`audit?since=${time(NOW)}&until=${time(NOW)}&type=auth.otp`, 3],
    [`audit?until=${time(NOW - 1)}`, 0],
    ['audit?serial=0A', 0],
    ['audit?ca=devices', 0],
    ['audit?request_id=none', 0],
  ])('%s', async (path, found) => {
    expect((await list(path)).items).toHaveLength(found);
  });

  it('serial numbers are read as tools print them, with and without leading zeros', async () => {
    for (const serial of ['0a0b', '8a0b']) await issue(api.store, { serial });
    for (const [text, serial] of [
      ['a0b', '0a0b'],
      ['A:0B', '0a0b'],
      ['0A:0B', '0a0b'],
      ['008A0B', '8a0b'],
      ['00:8a:0b', '8a0b'],
    ])
      expect((await list(`certificates?serial=${text}`)).items, text).toMatchObject([{ serial }]);
  });

  it.each([
    ['otp?status=dead', 'status'],
    ['requests?status=new', 'status'],
    ['audit?type=nothing', 'type'],
    ['audit?until=yesterday', 'until'],
    ['audit?serial=xyz', 'serial'],
    ['certificates?issued_after=1', 'issued_after'],
    ['certificates?serial=0', 'serial'],
    ['devices?enabled=yes', 'enabled'],
  ])('%s is 400', async (path, names) => {
    const answer = failure(await api.call('GET', `/admin/${path}`));
    expect(answer.statusCode).toBe(400);
    expect(answer.message).toContain(names);
  });
});

describe('the filters of certificates', () => {
  const folder = temporaryFolder();
  let start: number;
  let close: () => Promise<void>;
  let api: AdminFixture;
  let devices: Ca;
  let one: CertificateRow;
  let two: CertificateRow;

  beforeAll(async () => {
    start = Date.now();
    devices = await fileCa(folder, 'devices', true);
    api = await adminFixture({ cas: [devices], start, onEnd: (cleanUp) => (close = cleanUp) });
    one = await issueFrom(devices, api.store, 'CN=Sensor 1', [{ kind: 'dns', value: 'Sensor1.Example' }], {
      requester: 'CN=ra',
      device: 'device-1',
    });
    const later = reservation({ ca: 'devices', created_at: start + 60_000 });
    await api.store.reserve(later, []);
    two = {
      ...one,
      ...later,
      serial: later.serial ?? '',
      sans: ['URI:urn:sensor:2'],
      requester: 'otp:2',
      device: null,
    };
    await api.store.recordCertificate({ ...two, fingerprint_sha256: 'ab'.repeat(32) }, []);
  });
  afterAll(async () => {
    await close();
    folder.remove();
  });

  it('by san, requester, device and issued_after', async () => {
    const serials = async (query: string): Promise<unknown[]> =>
      (await api.call('GET', `/admin/certificates?${query}`)).json().items.map(({ serial }) => serial);
    expect(await serials('san=sensor1.ex')).toEqual([one.serial]);
    expect(await serials('san=DNS:s')).toEqual([one.serial]);
    expect(await serials('san=sensor')).toEqual([one.serial, two.serial]);
    expect(await serials('san=sensor&order=desc')).toEqual([two.serial, one.serial]);
    // Within one name, not across two.
    expect(await serials('san=%22')).toEqual([]);
    expect(await serials('requester=CN%3Dra')).toEqual([one.serial]);
    expect(await serials('requester=CN%3Dr')).toEqual([]);
    expect(await serials('device=device-1')).toEqual([one.serial]);
    // When it was issued, however far its not_before is dated back.
    expect(await serials(`issued_after=${time(start + 30_000)}`)).toEqual([two.serial]);
    expect(await serials(`issued_after=${time(start + 60_000)}`)).toEqual([]);
    expect(await serials(`issued_after=${time(start - DAY)}&san=urn&requester=otp:2&status=valid&ca=devices`)).toEqual([
      two.serial,
    ]);
  });
});
