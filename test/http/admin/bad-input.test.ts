import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adminFixture, bearer, DAY, failure, NOW, type AdminFixture } from './support.ts';

const json = { ...bearer, 'content-type': 'application/json' };
const at = (ms: number): string => new Date(ms).toISOString();

/** Bodies of POST /admin/otp, and what the message has to name. */
const BODIES: readonly (readonly [name: string, body: unknown, names: string])[] = [
  ['nothing in the object', {}, 'client_id'],
  ['no client_id', { max_uses: 1 }, 'client_id'],
  ['an empty client_id', { client_id: '' }, 'client_id'],
  ['a blank client_id', { client_id: '   ' }, 'client_id'],
  ['a NUL in client_id', { client_id: 'a\u0000b' }, 'client_id'],
  ['a line break in client_id', { client_id: 'a\nb' }, 'client_id'],
  ['a C1 control in client_id', { client_id: 'a\u0085b' }, 'client_id'],
  ['client_id null', { client_id: null }, 'client_id'],
  ['client_id a number', { client_id: 7 }, 'client_id'],
  ['client_id a list', { client_id: ['a'] }, 'client_id'],
  ['client_id an object', { client_id: { a: 1 } }, 'client_id'],
  ['client_id true', { client_id: true }, 'client_id'],
  ['a client_id of 256 characters', { client_id: 'x'.repeat(256) }, 'client_id'],
  ['max_uses 0', { client_id: 'd', max_uses: 0 }, 'max_uses'],
  ['max_uses negative', { client_id: 'd', max_uses: -1 }, 'max_uses'],
  ['max_uses a million and one', { client_id: 'd', max_uses: 1_000_001 }, 'max_uses'],
  ['max_uses 2 to the 53', { client_id: 'd', max_uses: 2 ** 53 }, 'max_uses'],
  ['max_uses 1.5', { client_id: 'd', max_uses: 1.5 }, 'max_uses'],
  ['max_uses "1"', { client_id: 'd', max_uses: '1' }, 'max_uses'],
  ['max_uses null', { client_id: 'd', max_uses: null }, 'max_uses'],
  ['max_uses true', { client_id: 'd', max_uses: true }, 'max_uses'],
  ['max_uses a list', { client_id: 'd', max_uses: [1] }, 'max_uses'],
  ['expires_at now', { client_id: 'd', expires_at: at(NOW) }, 'expires_at'],
  ['expires_at a day ago', { client_id: 'd', expires_at: at(NOW - DAY) }, 'expires_at'],
  ['expires_at in 1969', { client_id: 'd', expires_at: '1969-12-31T23:59:59Z' }, 'expires_at'],
  ['expires_at eleven years ahead', { client_id: 'd', expires_at: at(NOW + 11 * 366 * DAY) }, 'expires_at'],
  ['expires_at in the year 9999', { client_id: 'd', expires_at: '9999-12-31T23:59:59Z' }, 'expires_at'],
  ['expires_at with a year of five digits', { client_id: 'd', expires_at: '+12027-01-01T00:00:00Z' }, 'expires_at'],
  ['expires_at a word', { client_id: 'd', expires_at: 'tomorrow' }, 'expires_at'],
  ['expires_at empty', { client_id: 'd', expires_at: '' }, 'expires_at'],
  ['expires_at without a zone', { client_id: 'd', expires_at: '2027-01-01T00:00:00' }, 'expires_at'],
  ['expires_at a date only', { client_id: 'd', expires_at: '2027-01-01' }, 'expires_at'],
  ['expires_at an HTTP date', { client_id: 'd', expires_at: 'Fri, 01 Jan 2027 00:00:00 GMT' }, 'expires_at'],
  ['expires_at on 30 February', { client_id: 'd', expires_at: '2027-02-30T00:00:00Z' }, 'expires_at'],
  ['expires_at on 29 February of no leap year', { client_id: 'd', expires_at: '2027-02-29T00:00:00Z' }, 'expires_at'],
  ['expires_at in month 13', { client_id: 'd', expires_at: '2027-13-01T00:00:00Z' }, 'expires_at'],
  ['expires_at at hour 24', { client_id: 'd', expires_at: '2027-01-01T24:00:00Z' }, 'expires_at'],
  ['expires_at with an offset of 25 hours', { client_id: 'd', expires_at: '2027-01-01T00:00:00+25:00' }, 'expires_at'],
  ['expires_at a number', { client_id: 'd', expires_at: NOW + DAY }, 'expires_at'],
  ['expires_at null', { client_id: 'd', expires_at: null }, 'expires_at'],
  ['expires_at with a space behind', { client_id: 'd', expires_at: '2027-01-01T00:00:00Z ' }, 'expires_at'],
  ['ca unknown', { client_id: 'd', ca: 'nowhere' }, 'ca'],
  ['ca empty', { client_id: 'd', ca: '' }, 'ca'],
  ['ca null', { client_id: 'd', ca: null }, 'ca'],
  ['ca a number', { client_id: 'd', ca: 1 }, 'ca'],
  ['a misspelt field', { client_id: 'd', maxUses: 1 }, 'maxUses'],
  ['a token of the client\u2019s own', { client_id: 'd', token: 'mine' }, 'token'],
  ['an id of the client\u2019s own', { client_id: 'd', id: '1' }, 'id'],
  ['a list', [{ client_id: 'd' }], 'body'],
  ['a string', 'client_id', 'body'],
  ['a number', 1, 'body'],
  ['null', null, 'body'],
];

/** What is no JSON at all, or tricks. */
const TEXTS: readonly (readonly [name: string, text: string, code: string])[] = [
  ['an empty body', '', 'FIELD_INVALID'],
  ['half an object', '{"client_id":"d"', 'BODY_NOT_JSON'],
  ['single quotes', "{'client_id':'d'}", 'BODY_NOT_JSON'],
  ['a trailing comma', '{"client_id":"d",}', 'BODY_NOT_JSON'],
  ['a comment', '{"client_id":"d"} // x', 'BODY_NOT_JSON'],
  ['two documents', '{"client_id":"d"}{"client_id":"e"}', 'BODY_NOT_JSON'],
  ['NaN', '{"client_id":"d","max_uses":NaN}', 'BODY_NOT_JSON'],
  ['a form', 'client_id=d', 'BODY_NOT_JSON'],
  ['deep nesting', '['.repeat(30_000), 'BODY_NOT_JSON'],
  ['deep nesting, closed', '['.repeat(30_000) + ']'.repeat(30_000), 'FIELD_INVALID'],
  ['a number beyond a double', '{"client_id":"d","max_uses":1e999}', 'FIELD_INVALID'],
  ['__proto__', '{"client_id":"d","__proto__":{"max_uses":5}}', 'FIELD_INVALID'],
  ['constructor', '{"client_id":"d","constructor":{"prototype":{}}}', 'FIELD_INVALID'],
];

const QUERIES: readonly (readonly [url: string, names: string])[] = [
  ['/admin/otp?limit=0', 'limit'],
  ['/admin/otp?limit=-1', 'limit'],
  ['/admin/otp?limit=1001', 'limit'],
  ['/admin/otp?limit=1.5', 'limit'],
  ['/admin/otp?limit=1e2', 'limit'],
  ['/admin/otp?limit=0x10', 'limit'],
  ['/admin/otp?limit=ten', 'limit'],
  ['/admin/otp?limit=99999999999999999999', 'limit'],
  ['/admin/otp?limit=1&limit=2', 'limit'],
  ['/admin/otp?cursor=nonsense', 'cursor'],
  ['/admin/otp?cursor=eyJ9', 'cursor'],
  ['/admin/otp?status=alive', 'status'],
  ['/admin/otp/x?ca=devices', 'ca'],
  ['/admin/certificates?status=good', 'status'],
  ['/admin/certificates?status=valid&status=revoked', 'status'],
  ['/admin/certificates?serial=xyz', 'serial'],
  ['/admin/certificates?serial=12g', 'serial'],
  [`/admin/certificates?serial=${'00'.repeat(21)}`, 'serial'],
  ['/admin/certificates?expires_before=soon', 'expires_before'],
  ['/admin/certificates?expires_before=2027-02-30T00:00:00Z', 'expires_before'],
  ['/admin/certificates?expires_before=2027-01-01', 'expires_before'],
  ['/admin/certificates?cursor=%00', 'cursor'],
  ['/admin/certificates?serials=00', 'serials'],
  ['/admin/cas?cursor=1', 'cursor'],
  ['/admin/cas?cursor=-1', 'cursor'],
  ['/admin/cas?limit=x', 'limit'],
  ['/admin/lockouts?cursor=%F0%9F%98%80', 'cursor'],
  ['/admin/lockouts?scope=address', 'scope'],
  ['/admin/audit?type=otp', 'type'],
  ['/admin/audit?since=yesterday', 'since'],
  ['/admin/audit?since=2026-11-21', 'since'],
  ['/admin/audit?limit=0', 'limit'],
  ['/admin/openapi.json?format=yaml', 'format'],
];

const LONE = '\ud800';
const CSR_AND = { ca: 'devices', csr: 'x' };
/** Texts that are not Unicode, in each call that takes text, and what the message has to name. */
const MALFORMED: readonly (readonly [call: string, body: unknown, names: string])[] = [
  ['POST /admin/otp', { client_id: `device-1${LONE}` }, 'client_id'],
  ['POST /admin/otp', { client_id: `\udc00device-1` }, 'client_id'],
  ['POST /admin/otp', { client_id: 'd', ca: LONE }, 'ca'],
  ['POST /admin/devices', { id: LONE }, 'id'],
  ['POST /admin/devices?mode=upsert', { id: 'd', note: `a${LONE}` }, 'note'],
  ['POST /admin/devices', { id: 'd', attributes: { site: LONE } }, 'attributes.site'],
  ['POST /admin/devices', { id: 'd', attributes: { [LONE]: 'x' } }, 'attributes'],
  [
    'POST /admin/devices',
    { id: 'd', match: { fingerprint_sha256: 'ab'.repeat(32), common_name: LONE } },
    'match.common_name',
  ],
  ['PATCH /admin/devices/d', { note: LONE }, 'note'],
  ['POST /admin/check', { ...CSR_AND, as: { client_id: LONE } }, 'as.client_id'],
  ['POST /admin/check', { ...CSR_AND, as: { device: LONE } }, 'as.device'],
  ['POST /admin/check', { ...CSR_AND, as: { principal: `${LONE}@EXAMPLE.COM` } }, 'as.principal'],
  ...[LONE, '', '  ', 'a\nb', 1, undefined].map(
    (reason) => ['POST /admin/requests/some-id/reject', { reason }, 'reason'] as const,
  ),
];

describe('bad input is 400 and names the field', () => {
  let api: AdminFixture;
  let close: () => Promise<void>;
  // One app for the whole table: it has to go on after every one of these.
  beforeAll(async () => {
    api = await adminFixture({ onEnd: (cleanUp) => (close = cleanUp) });
  });
  afterAll(() => close());

  it.each(BODIES)('POST /admin/otp with %s', async (_name, body, names) => {
    const answer = failure(await api.raw('POST', '/admin/otp', json, JSON.stringify(body)));
    expect(answer).toMatchObject({ statusCode: 400, code: 'FIELD_INVALID' });
    expect(answer.message).toContain(names);
  });

  it.each(TEXTS)('POST /admin/otp with %s', async (_name, text, code) => {
    expect(failure(await api.raw('POST', '/admin/otp', json, text))).toMatchObject({ statusCode: 400, code });
  });

  it('POST /admin/otp with bytes that are not UTF-8', async () => {
    const payload = Buffer.concat([Buffer.from('{"client_id":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    const response = await api.app.inject({ method: 'POST', url: '/admin/otp', headers: json, payload });
    expect(failure(response)).toMatchObject({ statusCode: 400, code: 'BODY_NOT_JSON' });
  });

  it.each(MALFORMED)('%s with a text that is not well-formed Unicode: %j', async (call, body, names) => {
    const [method = '', url = ''] = call.split(' ');
    const answer = failure(await api.raw(method, url, json, JSON.stringify(body)));
    expect(answer).toMatchObject({ statusCode: 400, code: 'FIELD_INVALID' });
    expect(answer.message.split(' ')).toContain(names);
  });

  it.each([
    ['/admin/otp/bulk', { client_id: LONE }, 'client_id'],
    ['/admin/devices', { id: LONE }, 'id'],
    ['/admin/devices', { id: 'd', note: LONE }, 'note'],
  ])('a row of NDJSON with such a text, in POST %s: %j', async (url, row, names) => {
    const headers = { ...bearer, 'content-type': 'application/x-ndjson' };
    const good = { [Object.keys(row)[0] ?? '']: names };
    const response = await api.raw('POST', url, headers, `${JSON.stringify(row)}\n${JSON.stringify(good)}\n`);
    const [refused, taken] = response.body
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(refused).toMatchObject({
      row: 1,
      code: 'FIELD_INVALID',
      message: expect.stringContaining(`${names} must be Unicode`) as string,
    });
    expect(taken).not.toHaveProperty('code');
  });

  it('CSV with the bytes of half a surrogate pair', async () => {
    const payload = Buffer.concat([Buffer.from('client_id\n'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('\n')]);
    const headers = { ...bearer, 'content-type': 'text/csv' };
    const response = await api.app.inject({ method: 'POST', url: '/admin/otp/bulk', headers, payload });
    expect(failure(response)).toMatchObject({ statusCode: 400, code: 'BODY_NOT_UTF8' });
  });

  it('text beyond the basic plane is well-formed', async () => {
    const response = await api.raw('POST', '/admin/otp', json, JSON.stringify({ client_id: 'device 😀' }));
    expect(response.statusCode).toBe(201);
  });

  it.each(QUERIES)('GET %s', async (url, names) => {
    const answer = failure(await api.raw('GET', url, bearer));
    expect(answer.statusCode).toBe(400);
    expect(answer.message).toContain(names);
  });

  it.each([
    ['text/plain', '{"client_id":"d"}'],
    ['application/x-www-form-urlencoded', 'client_id=d'],
    ['application/xml', '<client_id>d</client_id>'],
    ['application/json-patch+json', '[]'],
    ['application/jsonx', '{"client_id":"d"}'],
    ['json', '{"client_id":"d"}'],
    ['application/json, text/plain', '{"client_id":"d"}'],
  ])('415 for the content type "%s"', async (type, body) => {
    const answer = failure(await api.raw('POST', '/admin/otp', { ...bearer, 'content-type': type }, body));
    expect(answer).toMatchObject({ statusCode: 415, code: 'MEDIA_TYPE_UNSUPPORTED' });
  });

  it.each([{}, { 'content-type': '' }])('400 for a body without a content type: %j', async (headers) => {
    const answer = failure(await api.raw('POST', '/admin/otp', { ...bearer, ...headers }, '{"client_id":"d"}'));
    expect(answer).toMatchObject({ statusCode: 400, code: 'CONTENT_TYPE_MISSING' });
  });

  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
  ])('takes the content type "%s"', async (type) => {
    const response = await api.raw('POST', '/admin/otp', { ...bearer, 'content-type': type }, '{"client_id":"d"}');
    expect(response.statusCode).toBe(201);
  });

  it.each(['gzip', 'br', 'identity, gzip'])('415 for a body in the coding %s', async (coding) => {
    const answer = failure(await api.raw('POST', '/admin/otp', { ...json, 'content-encoding': coding }, '{}'));
    expect(answer).toMatchObject({ statusCode: 415, code: 'CONTENT_CODING_UNSUPPORTED' });
  });

  it('413 for a body above server.body_limit, told by its Content-Length or found out', async () => {
    const large = JSON.stringify({ client_id: 'x'.repeat(70_000) });
    expect(failure(await api.raw('POST', '/admin/otp', json, large))).toMatchObject({
      statusCode: 413,
      code: 'BODY_TOO_LARGE',
    });
  });

  it('goes on after all of that, and has made no token of it', async () => {
    expect((await api.call('GET', '/healthz')).statusCode).toBe(200);
    const { items } = await api.store.listOtps({ limit: 1000 }, 0);
    expect(items.map(({ client_id }) => client_id)).toEqual(['client_id', 'device 😀', 'd', 'd', 'd', 'd']);
  });

  it('never shows a stack, a path or a value it was given', async () => {
    const secret = 'hunter2-hunter2';
    const answers = [
      await api.call('POST', '/admin/otp', { client_id: 'd', ca: secret }),
      await api.call('POST', '/admin/otp', { client_id: 'd', expires_at: secret }),
      await api.call('GET', `/admin/otp/${secret}`),
      await api.call('DELETE', `/admin/otp/${secret}`),
      await api.call('GET', `/admin/${secret}`),
    ];
    for (const { body } of answers) expect(body).not.toMatch(/hunter2|node_modules|\.ts\b|\bat \S+ \(/);
    expect(api.logged()).not.toContain('hunter2');
    const audit = await api.store.listAudit({ limit: 1000 });
    expect(JSON.stringify(audit)).not.toContain('hunter2');
  });
});
