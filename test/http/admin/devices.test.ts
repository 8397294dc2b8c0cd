/**
 * The devices of the admin API, one and in bulk.
 *
 * Longer than other files: the calls of one resource are told in one place.
 */
import { describe, expect, test } from 'vitest';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { spkiHash } from '../../../src/pki/x509/public-key.ts';
import { deviceRow, otpRow, requestRow } from '../../store/rows.ts';
import { adminFixture, ailingCa, bearer, DAY, failure, fileCa, issueFrom, NOW, type AdminFixture } from './support.ts';
import { makeCa } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { expectBody, expectWholeBody } from './typed.ts';

const at = (ms: number): string => new Date(ms).toISOString();
const NDJSON = 'application/x-ndjson';
const CSV = 'text/csv';
const FINGERPRINT = 'ab'.repeat(32);
const maker = parseCertificate((await makeCa('CN=Maker,O=Example')).der);
const KEY = spkiHash(maker);

const FULL = {
  id: 'device-1',
  ca: 'devices',
  match: { issuer_spki_sha256: KEY, serial_number: '4711' },
  attributes: { site: 'Berlin', 'rack.no': '7' },
  enabled: false,
  not_after: at(NOW + DAY),
  note: 'hall 3, "left"\nnear the door',
};
const DEFAULTS = { ca: null, match: null, attributes: {}, enabled: true, not_after: null, note: null };
const TIMES = { created_at: at(NOW), changed_at: at(NOW) };

/** A bulk call. */
const bulk = ({ raw }: AdminFixture, type: string, rows: string, query = '') =>
  raw('POST', `/admin/devices${query}`, { ...bearer, 'content-type': type }, rows);

const lines = (text: string): unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);

const ids = async ({ call }: AdminFixture, query = ''): Promise<string[]> =>
  (await call('GET', `/admin/devices?${query}`)).json().items.map(({ id }) => id);

describe('POST /admin/devices', () => {
  test('201 with the device; a known id is 409, and nothing changed', async () => {
    const { call, store } = await adminFixture();
    const created = await call('POST', '/admin/devices', FULL);
    expect(created.statusCode).toBe(201);
    expectWholeBody(created, { ...FULL, ...TIMES });
    expectWholeBody(await call('POST', '/admin/devices', { id: 'device-2' }), {
      id: 'device-2',
      ...DEFAULTS,
      ...TIMES,
    });
    const again = await call('POST', '/admin/devices', { id: 'device-1', ca: 'devices' });
    expect(failure(again)).toMatchObject({ statusCode: 409, code: 'DEVICE_EXISTS' });
    expectBody(await call('GET', '/admin/devices/device-1'), FULL);
    const types = (await store.listAudit({ limit: 9 })).items.map(({ type, outcome }) => `${type} ${outcome}`);
    expect(types.slice(0, 2)).toEqual(['admin.access success', 'device.created success']);
    expect(types.at(-1)).toBe('admin.access failure');
  });

  test('mode=upsert changes only the given fields of a known device: 200, and it stays the same device', async () => {
    const { call, store, advance } = await adminFixture();
    await call('POST', '/admin/devices?mode=upsert', FULL);
    const before = (await store.getDevices('device-1'))[0];
    const upsert = async (fields: object) => {
      advance(1000);
      const changed = await call('POST', '/admin/devices?mode=upsert', { id: 'device-1', ...fields });
      expect(changed.statusCode).toBe(200);
      return changed;
    };
    const unchanged = { ...FULL, created_at: at(NOW) };
    expectWholeBody(await upsert({}), { ...unchanged, changed_at: at(NOW + 1000) });
    const attributes = { site: 'Bonn' };
    expectWholeBody(await upsert({ attributes }), { ...unchanged, attributes, changed_at: at(NOW + 2000) });
    const cleared = { note: null, not_after: null, match: null, enabled: true };
    expectWholeBody(await upsert(cleared), { ...unchanged, ...cleared, attributes, changed_at: at(NOW + 3000) });
    expect((await store.getDevices('device-1'))[0]?.key).toBe(before?.key);
    const { items } = await store.listAudit({ limit: 9, type: 'device.changed' });
    expect(items.map(({ detail, ca }) => [detail, ca])).toEqual([
      ['device device-1', 'devices'],
      ['device device-1: attributes', 'devices'],
      [expect.stringMatching(/^device device-1: enabled true, /), 'devices'],
    ]);
  });

  test('an ID exists once without ca and once for each label; ?ca= chooses, and empty is the device without', async () => {
    const folder = temporaryFolder();
    const fixture = await adminFixture({
      cas: [await fileCa(folder, 'devices', true), await fileCa(folder, 'lab', false)],
    });
    const { call, store } = fixture;
    for (const ca of ['devices', undefined, 'lab']) {
      const made = await call('POST', '/admin/devices', { id: 'x', ...(ca && { ca }) });
      expectBody(made, { id: 'x', ca: ca ?? null });
      const again = await call('POST', '/admin/devices?mode=create', { id: 'x', ca: ca ?? null });
      expect(failure(again)).toMatchObject({ statusCode: 409, code: 'DEVICE_EXISTS' });
    }
    for (const [method, body] of [['GET'], ['PATCH', { note: 'n' }], ['DELETE']] as const) {
      const path = '/admin/devices/x';
      expect(failure(await call(method, path, body))).toMatchObject({ statusCode: 400, code: 'DEVICE_ID_AMBIGUOUS' });
      expect((await call(method, `${path}?ca=nowhere`, body)).statusCode).toBe(404);
    }
    expectBody(await call('GET', '/admin/devices/x?ca='), { ca: null });
    expectBody(await call('PATCH', '/admin/devices/x?ca=lab', { note: 'n' }), { ca: 'lab', note: 'n' });
    const moved = await call('PATCH', '/admin/devices/x?ca=lab', { ca: 'devices' });
    expect(failure(moved)).toMatchObject({ statusCode: 409, code: 'DEVICE_EXISTS' });
    const table = await fixture.raw('GET', '/admin/devices?id=x', { ...bearer, accept: CSV });
    expect((await bulk(fixture, CSV, table.body, '?mode=upsert')).body).toContain('x,lab,');
    expect((await call('DELETE', '/admin/devices/x?ca=')).statusCode).toBe(204);
    expect((await store.getDevices('x')).map(({ ca, note }) => [ca, note])).toEqual([
      ['devices', null],
      ['lab', 'n'],
    ]);
  });

  test('match.issuer is stored as the key of the only configured certificate with that subject', async () => {
    const namesake = parseCertificate((await makeCa('CN=Two')).der);
    const other = parseCertificate((await makeCa('CN=Two', { slot: 'another key' })).der);
    const renewed = parseCertificate((await makeCa('CN=Maker,O=Example', { serial: '02' })).der);
    const { call } = await adminFixture({ issuers: [maker, renewed, namesake, other] });
    const enter = (match: object) => call('POST', '/admin/devices?mode=upsert', { id: 'd', match });
    expectBody(await enter({ issuer: 'cn=maker, o=EXAMPLE', serial_number: '4711' }), {
      match: { issuer_spki_sha256: KEY, serial_number: '4711' },
    });
    expect((await enter({ issuer: 'CN=Maker,O=Example' })).json().match).toEqual({ issuer_spki_sha256: KEY });
    const printed = KEY.toUpperCase().match(/../g)?.join(':');
    expect((await enter({ issuer_spki_sha256: printed })).json().match).toEqual({ issuer_spki_sha256: KEY });
    expect((await enter({ issuer: 'CN=Maker,O=Example', issuer_spki_sha256: KEY })).statusCode).toBe(200);
    for (const [match, message] of [
      [{ issuer: 'CN=Nobody' }, 'is not the subject of a configured trust anchor or issuer certificate'],
      [{ issuer: 'CN=Maker' }, 'is not the subject of a configured trust anchor or issuer certificate'],
      [{ issuer: 'CN=Two' }, 'configured certificates with different keys'],
      [{ issuer: 'CN=Maker,O=Example', issuer_spki_sha256: FINGERPRINT }, 'another key'],
    ] as const) {
      const refused = failure(await enter(match));
      expect(refused).toMatchObject({ statusCode: 400, code: 'FIELD_INVALID' });
      expect(refused.message).toContain(message);
    }
  });

  test.each<[string, unknown, string]>([
    ['no id', {}, 'id'],
    ['an empty id', { id: '' }, 'id'],
    ['a blank id', { id: ' ' }, 'id'],
    ['a line break in the id', { id: 'a\nb' }, 'id'],
    ['an id of 256 characters', { id: 'x'.repeat(256) }, 'id'],
    ['an unknown field', { id: 'd', serial: '1' }, 'serial'],
    ['an unknown label', { id: 'd', ca: 'nowhere' }, 'ca'],
    ['enabled a text', { id: 'd', enabled: 'true' }, 'enabled'],
    ['not_after in the past', { id: 'd', not_after: at(NOW) }, 'not_after'],
    ['not_after a word', { id: 'd', not_after: 'never' }, 'not_after'],
    ['a note that is too long', { id: 'd', note: 'x'.repeat(2001) }, 'note'],
    ['an empty match', { id: 'd', match: {} }, 'match'],
    ['a match without issuer and fingerprint', { id: 'd', match: { common_name: 'a', serial_number: '1' } }, 'match'],
    ['an unknown field of match', { id: 'd', match: { issuer: 'CN=a', subject: 'x' } }, 'match.subject'],
    ['an issuer that is no name', { id: 'd', match: { issuer: 'Maker' } }, 'match.issuer'],
    ['an empty issuer', { id: 'd', match: { issuer: ' ' } }, 'match.issuer'],
    ['a san without its kind', { id: 'd', match: { issuer_spki_sha256: KEY, san: 'a.example' } }, 'match.san'],
    ['a short key hash', { id: 'd', match: { issuer_spki_sha256: 'abcd' } }, 'match.issuer_spki_sha256'],
    ['a short fingerprint', { id: 'd', match: { fingerprint_sha256: 'abcd' } }, 'match.fingerprint_sha256'],
    ['an attribute that is a number', { id: 'd', attributes: { a: 1 } }, 'attributes.a'],
    ['an attribute with a space in its name', { id: 'd', attributes: { 'a b': 'x' } }, 'attributes'],
    [
      '65 attributes',
      { id: 'd', attributes: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`a${n}`, ''])) },
      'attributes',
    ],
    ['a list', [{ id: 'd' }], 'body'],
    ['null', null, 'body'],
  ])('400 names the field: %s', async (_, body, names) => {
    const fixture = await adminFixture();
    const { statusCode, code, message } = failure(await fixture.call('POST', '/admin/devices', body));
    expect([statusCode, code]).toEqual([400, 'FIELD_INVALID']);
    expect(message).toContain(names);
    expect(await ids(fixture)).toEqual([]);
  });

  test('a fingerprint as openssl prints it', async () => {
    const { call } = await adminFixture();
    const printed = FINGERPRINT.toUpperCase().match(/../g)?.join(':');
    const made = await call('POST', '/admin/devices', { id: 'd', match: { fingerprint_sha256: printed } });
    expectBody(made, { match: { fingerprint_sha256: FINGERPRINT } });
  });
});

describe('POST /admin/devices with many rows', () => {
  test('NDJSON: each row stands for itself and is answered in its place', async () => {
    const fixture = await adminFixture();
    const answer = await bulk(
      fixture,
      NDJSON,
      [
        JSON.stringify(FULL),
        '',
        '{"id": "device-1", "ca": "devices"}',
        'nonsense',
        '{"id": 7}',
        '\ufeff{}',
        '{"id": "device-2"}',
      ].join('\r\n'),
    );
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, NDJSON]);
    expect(lines(answer.body)).toEqual([
      { ...FULL, ...TIMES },
      { row: 3, code: 'DEVICE_EXISTS', message: expect.stringMatching(/^id "[^"]+": /) as string },
      { row: 4, code: 'ROW_INVALID', message: expect.any(String) as string },
      { row: 5, code: 'FIELD_INVALID', message: expect.stringContaining('id') as string },
      { row: 6, code: expect.any(String) as string, message: expect.any(String) as string },
      { id: 'device-2', ...DEFAULTS, ...TIMES },
    ]);
    expect(await ids(fixture)).toEqual(['device-1', 'device-2']);
  });

  test('CSV: columns of match and attributes, answered as CSV; what is exported can be sent back', async () => {
    const fixture = await adminFixture({ issuers: [maker] });
    const table = [
      'id,ca,enabled,not_after,note,match.issuer,match.serial_number,attributes.site,attributes.rack.no',
      `device-1,devices,false,${FULL.not_after},"hall 3, ""left""\nnear the door","CN=Maker,O=Example",4711,Berlin,7`,
      'device-2,,yes,,,,,,',
      'device-3,,,,,,,',
      'device-4,,,,,,,,x',
    ].join('\r\n');
    const answer = await bulk(fixture, `${CSV}; charset=utf-8`, table);
    expect(answer.headers['content-type']).toContain('text/csv');
    const [header = '', first = '', ...others] = answer.body.split('\r\n');
    expect(header).toBe(
      'id,ca,enabled,not_after,note,match.issuer_spki_sha256,match.serial_number,match.common_name,match.san,match.fingerprint_sha256,attributes.site,attributes.rack.no,row,code,message',
    );
    expect(first).toContain('device-1,devices,false');
    expect(others.map((line) => line.split(',').slice(12, 14).join(' '))).toEqual([
      '4 FIELD_INVALID',
      '5 ROW_INVALID',
      ' ',
      '',
    ]);
    expectBody(await fixture.call('GET', '/admin/devices/device-1'), FULL);

    const exported = await fixture.raw('GET', '/admin/devices?limit=1', { ...bearer, accept: CSV });
    expect(exported.headers['content-type']).toContain('text/csv');
    const fresh = await adminFixture();
    await bulk(fresh, CSV, exported.body);
    expect(await ids(fresh)).toEqual(['device-1', 'device-4']);
    expectBody(await fresh.call('GET', '/admin/devices/device-1'), FULL);
    expect((await fresh.raw('GET', '/admin/devices', { ...bearer, accept: CSV })).body).toBe(exported.body);
    expect((await fresh.raw('GET', '/admin/devices?enabled=false', { ...bearer, accept: CSV })).body).not.toContain(
      'device-4',
    );
  });

  test('a dry run checks every row, names row and id, and registers nothing', async () => {
    const { raw, call, store } = await adminFixture();
    await call('POST', '/admin/devices', { id: 'known' });
    const rows = 'id,enabled\nnew,\nknown,\nbad,perhaps\nnew,\n';
    const send = (query: string) =>
      raw('POST', `/admin/devices?${query}`, { ...bearer, 'content-type': 'text/csv' }, rows);
    const failures = async (query: string) =>
      (await send(query)).body
        .trimEnd()
        .split('\r\n')
        .map((line) => /,(\d,[A-Z_]+,"?id ""\w+"")/.exec(line)?.[1]);
    const bad = '4,FIELD_INVALID,"id ""bad""';
    const [second, last] = ['3,DEVICE_EXISTS,"id ""known""', '5,DEVICE_EXISTS,"id ""new""'];
    expect(await failures('dry_run=true')).toEqual([undefined, undefined, second, bad, last]);
    expect(await failures('dry_run=true&mode=upsert')).toEqual([undefined, undefined, undefined, bad, undefined]);
    const one = await call('POST', '/admin/devices?dry_run=true', { id: 'new' });
    expect([one.statusCode, failure(await call('POST', '/admin/devices?dry_run=true', { id: 'known' })).code]).toEqual([
      200,
      'DEVICE_EXISTS',
    ]);
    expect((await store.listDevices({ limit: 9 })).items.map(({ id }) => id)).toEqual(['known']);
    expect(await failures('')).toEqual([undefined, undefined, second, bad, last]);
  });

  test('mode=upsert with NDJSON changes the given fields; null clears', async () => {
    const fixture = await adminFixture();
    await fixture.call('POST', '/admin/devices', FULL);
    fixture.advance(5000);
    const answer = await bulk(
      fixture,
      NDJSON,
      [
        '{"id":"device-1"}',
        '{"id":"device-2"}',
        '{"id":"device-2","note":"n"}',
        '{"id":"device-1","note":null,"attributes":{"site":"Bonn"}}',
      ].join('\n'),
      '?mode=upsert',
    );
    const changed = {
      ...FULL,
      note: null,
      attributes: { site: 'Bonn' },
      created_at: at(NOW),
      changed_at: at(NOW + 5000),
    };
    expect(lines(answer.body)).toMatchObject([
      { id: 'device-1' },
      { id: 'device-2' },
      { id: 'device-2', note: 'n' },
      changed,
    ]);
    expectWholeBody(await fixture.call('POST', '/admin/devices?mode=upsert', { id: 'device-1' }), changed);
  });

  test('mode=upsert with CSV changes what has a cell: neither an absent column nor an empty cell clears', async () => {
    const fixture = await adminFixture({ issuers: [maker] });
    await fixture.call('POST', '/admin/devices', FULL);
    const upsert = async (...table: readonly string[]) => {
      const { body } = await bulk(fixture, CSV, table.join('\n'), '?mode=upsert');
      expect(body).not.toContain('_INVALID');
      return (await fixture.call('GET', '/admin/devices/device-1')).json();
    };
    expect(await upsert('id', 'device-1')).toMatchObject(FULL);
    const header =
      'id,ca,enabled,not_after,note,match.issuer,match.serial_number,match.san,attributes.site,attributes.rack.no';
    expect(await upsert(header, 'device-1,,,,,,,,,')).toMatchObject(FULL);
    const bonn = { ...FULL, attributes: { ...FULL.attributes, site: 'Bonn' } };
    expect(await upsert('id,attributes.site', 'device-1,Bonn')).toMatchObject(bonn);
    const named = { ...bonn, match: { ...FULL.match, san: 'DNS:a' } };
    expect(await upsert(header, 'device-1,,,,,"CN=Maker,O=Example",,DNS:a,,')).toMatchObject(named);
    expect(await upsert('id,enabled,note', 'device-1,true,moved')).toMatchObject({
      ...named,
      enabled: true,
      note: 'moved',
    });
    const incomplete = await bulk(fixture, CSV, 'id,match.san\ndevice-1,DNS:b', '?mode=upsert');
    expect(incomplete.body).toContain('match must have an issuer');
  });

  test.each([
    ['NDJSON', NDJSON, (n: number) => Array.from({ length: n }, (_, i) => `{"id":"d${i}"}`).join('\n')],
    ['CSV', CSV, (n: number) => ['id', ...Array.from({ length: n }, (_, i) => `d${i}`)].join('\n')],
  ])('%s: 10,000 rows are taken, one more is 413 and none of them is', async (_, type, rows) => {
    const fixture = await adminFixture();
    expect(failure(await bulk(fixture, type, rows(10_001)))).toMatchObject({ statusCode: 413, code: 'BODY_TOO_LARGE' });
    expect(await ids(fixture)).toEqual([]);
    const taken = await bulk(fixture, type, rows(10_000));
    expect([taken.statusCode, taken.body.trimEnd().split('\n').length]).toEqual([200, type === CSV ? 10_001 : 10_000]);
    expect((await fixture.call('GET', '/admin/devices/d9999')).statusCode).toBe(200);
  });

  test('16 MiB are taken, more is 413', async () => {
    const fixture = await adminFixture();
    const filler = (length: number) => `{"id":"d"}\n${' '.repeat(length - 11)}`;
    expect((await bulk(fixture, NDJSON, filler(16 << 20))).statusCode).toBe(200);
    expect(failure(await bulk(fixture, NDJSON, filler((16 << 20) + 1)))).toMatchObject({ statusCode: 413 });
  });

  test.each<[string, string, string | Buffer, number, string]>([
    ['a column that there is not', CSV, 'id,serial\na,1', 400, 'COLUMN_UNKNOWN'],
    ['a column twice', CSV, 'id,id\na,1', 400, 'COLUMN_UNKNOWN'],
    ['no header', CSV, '\n', 400, 'HEADER_MISSING'],
    ['another type', 'application/xml', '<a/>', 415, 'MEDIA_TYPE_UNSUPPORTED'],
    ['a type that begins alike', 'text/csvx', 'id', 415, 'MEDIA_TYPE_UNSUPPORTED'],
    ['an unknown mode', `${NDJSON}?mode=replace`, '{}', 400, 'FIELD_INVALID'],
  ])('refused as a whole: %s', async (_, type, rows, statusCode, code) => {
    const fixture = await adminFixture();
    const [media = '', query] = type.split('?');
    const answer = await bulk(fixture, media, String(rows), query === undefined ? '' : `?${query}`);
    expect(failure(answer)).toMatchObject({ statusCode, code });
  });

  test('bulk types are taken nowhere else', async () => {
    const { raw } = await adminFixture();
    for (const type of [NDJSON, CSV])
      expect(
        failure(await raw('POST', '/admin/otp', { ...bearer, 'content-type': type }, 'client_id\na')),
      ).toMatchObject({
        statusCode: 415,
      });
  });

  test('a store that fails answers the rows that it did not take', async () => {
    let calls = 0;
    const fixture = await adminFixture({
      wrapStore: (store) => ({
        ...store,
        putDevices: (...args) => {
          calls += 1;
          return calls === 2 ? Promise.reject(new Error('gone')) : store.putDevices(...args);
        },
      }),
    });
    const rows = Array.from({ length: 401 }, (_, n) => `{"id":"d${n}"}`).join('\n');
    const codes = lines((await bulk(fixture, NDJSON, rows)).body).map((line) => (line as { code?: string }).code);
    expect(codes.filter((code) => code === 'INTERNAL_ERROR')).toHaveLength(200);
    expect([codes[0], codes[200], codes[400]]).toEqual([undefined, 'INTERNAL_ERROR', undefined]);
  });
});

describe('GET, PATCH, DELETE /admin/devices', () => {
  test('the list: each filter, both orders, pages', async () => {
    const fixture = await adminFixture();
    await bulk(fixture, CSV, 'id,ca,enabled\na,devices,\nb,,false\nc,devices,false');
    expect(await ids(fixture)).toEqual(['a', 'b', 'c']);
    expect(await ids(fixture, 'order=desc')).toEqual(['c', 'b', 'a']);
    expect(await ids(fixture, 'id=b')).toEqual(['b']);
    expect(await ids(fixture, 'ca=devices&enabled=false')).toEqual(['c']);
    expect(await ids(fixture, 'enabled=true')).toEqual(['a']);
    const page = (await fixture.call('GET', '/admin/devices?limit=2')).json();
    expect(await ids(fixture, `limit=2&cursor=${page.next_cursor}`)).toEqual(['c']);
    for (const query of ['enabled=maybe', 'order=up', 'limit=0', 'name=a', 'cursor=x'])
      expect((await fixture.call('GET', `/admin/devices?${query}`)).statusCode, query).toBe(400);
  });

  test('one with its certificates, tokens, requests and last events', async () => {
    const folder = temporaryFolder();
    const ca = await fileCa(folder, 'devices', true);
    const { call, store } = await adminFixture({ cas: [ca] });
    await call('POST', '/admin/devices', { id: 'a/b c' });
    const row = (await store.getDevices('a/b c'))[0];
    if (row === undefined) throw new Error('no device');
    const certificate = await issueFrom(ca, store, 'CN=a', [], { device: row.id, device_key: row.key });
    await store.insertOtp(otpRow({ client_id: row.id }), []);
    await store.queueRequest(requestRow({ device: row.id, device_key: row.key }), null, []);
    const certificate_not_after = (await store.listCertificates({ limit: 1 }, NOW)).items.map(({ not_after }) =>
      at(not_after),
    )[0];
    const known = { id: 'a/b c', certificate_not_after: certificate_not_after ?? '', last_used_at: null };
    expectBody(await call('GET', '/admin/devices'), { items: [known] });
    const page = await call('GET', `/admin/devices/${encodeURIComponent(row.id)}`);
    expectBody(page, {
      ...known,
      certificates: [{ serial: certificate.serial, device: 'a/b c', status: 'valid' }],
      tokens: [{ client_id: 'a/b c', uses: 0 }],
      requests: [{ device: 'a/b c', status: 'pending' }],
      events: [{ type: 'device.created', detail: 'device a/b c' }, { type: 'admin.access' }],
    });
    expect(page.body).not.toContain('lookup');
    const found = await call('GET', '/admin/certificates?device=a%2Fb%20c');
    expectBody(found, { items: [{ serial: certificate.serial }] });
    folder.remove();
  });

  test('PATCH changes what it names; null takes away', async () => {
    const { call, store, advance } = await adminFixture();
    await call('POST', '/admin/devices', FULL);
    advance(1000);
    const changed = await call('PATCH', '/admin/devices/device-1', {
      enabled: true,
      note: null,
      attributes: { a: 'b' },
    });
    expect(changed.statusCode).toBe(200);
    expectWholeBody(changed, {
      ...FULL,
      ...TIMES,
      enabled: true,
      note: null,
      attributes: { a: 'b' },
      changed_at: at(NOW + 1000),
    });
    expect(
      (await call('PATCH', '/admin/devices/device-1', { match: null, not_after: null, ca: null })).json(),
    ).toMatchObject({
      match: null,
      not_after: null,
      ca: null,
    });
    const events = (await store.listAudit({ limit: 99, type: 'device.changed' })).items;
    expect(events[0]?.detail).toBe('device device-1: enabled true, attributes, note');
    for (const body of [{ id: 'x' }, { match: { san: 'DNS:a' } }, { enabled: null }, { not_after: at(0) }])
      expect((await call('PATCH', '/admin/devices/device-1', body)).statusCode, JSON.stringify(body)).toBe(400);
    expect(failure(await call('PATCH', '/admin/devices/nobody', {}))).toMatchObject({
      statusCode: 404,
      code: 'DEVICE_NOT_FOUND',
    });
  });

  test('DELETE forgets a device and leaves its certificates; revoke=true revokes them too', async () => {
    const folder = temporaryFolder();
    const ca = await fileCa(folder, 'devices', true);
    const { call, store } = await adminFixture({ cas: [ca] });
    for (const [id, query, status] of [
      ['kept', '', 'valid'],
      ['revoked', '?revoke=true', 'revoked'],
    ] as const) {
      await call('POST', '/admin/devices', { id });
      const row = (await store.getDevices(id))[0];
      const certificate = await issueFrom(ca, store, `CN=${id}`, [], { device: id, device_key: row?.key ?? '' });
      expect((await call('DELETE', `/admin/devices/${id}${query}`)).statusCode).toBe(204);
      expectBody(await call('GET', `/admin/certificates/${certificate.serial}`), { status });
      expect(failure(await call('DELETE', `/admin/devices/${id}`))).toMatchObject({ code: 'DEVICE_NOT_FOUND' });
      expect((await call('GET', `/admin/devices/${id}`)).statusCode).toBe(404);
    }
    folder.remove();
  });

  test('a CA that cannot be told leaves the device there, disabled', async () => {
    const down = ailingCa('devices', () => Promise.resolve({ health: 'down' }), [], true);
    const { call, store } = await adminFixture({ cas: [down] });
    await call('POST', '/admin/devices', { id: 'a' });
    const row = (await store.getDevices('a'))[0];
    const folder = temporaryFolder();
    await issueFrom(await fileCa(folder, 'devices', true), store, 'CN=a', [], {
      device: 'a',
      device_key: row?.key ?? '',
    });
    folder.remove();
    expect((await call('DELETE', '/admin/devices/a?revoke=true')).statusCode).toBeGreaterThanOrEqual(500);
    expect((await store.getDevices('a'))[0]).toMatchObject({ enabled: false });
  });

  test('a request of a device that was disabled cannot be approved: 409', async () => {
    const { call, store } = await adminFixture();
    const row = deviceRow({ enabled: false });
    await store.putDevices([{ row: { ...row, enabled: true }, events: [] }], 'create');
    const waiting = requestRow({ device: row.id, device_key: row.key, ca: 'devices' });
    await store.queueRequest(waiting, null, []);
    await call('PATCH', '/admin/devices/device-1', { enabled: false });
    expect(failure(await call('POST', `/admin/requests/${waiting.id}/approve`))).toMatchObject({
      statusCode: 409,
      code: 'DEVICE_NOT_REGISTERED',
    });
    expectBody(await call('GET', `/admin/requests/${waiting.id}`), {
      status: 'pending',
      device: 'device-1',
    });
    await call('PATCH', '/admin/devices/device-1', { enabled: true });
    expect((await call('POST', `/admin/requests/${waiting.id}/approve`)).statusCode).toBe(200);
  });
});
