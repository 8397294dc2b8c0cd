/** `POST /admin/otp/bulk`. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { adminFixture, bearer, DAY, failure, NOW } from './support.ts';

const at = (ms: number): string => new Date(ms).toISOString();

test('NDJSON: the record with its token, or the error, in the order of the rows', async () => {
  const { raw, store } = await adminFixture();
  const rows = ['{"client_id":"a"}', '{"client_id":""}', 'x', `{"client_id":"b","max_uses":3,"ca":"devices"}`];
  const headers = { ...bearer, 'content-type': 'application/x-ndjson' };
  const answer = await raw('POST', '/admin/otp/bulk', headers, rows.join('\n'));
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
  const common = { created_at: at(NOW), expires_at: at(NOW + DAY), uses: 0, status: 'active' };
  const token = expect.stringMatching(/^\S{20}$/) as string;
  const text = expect.any(String) as string;
  expect(
    answer.body
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([
    { id: text, client_id: 'a', ca: null, max_uses: 1, ...common, token },
    { row: 2, code: 'FIELD_INVALID', message: expect.stringContaining('client_id') as string },
    { row: 3, code: 'ROW_INVALID', message: text },
    { id: text, client_id: 'b', ca: 'devices', max_uses: 3, ...common, token },
  ]);
  expect((await store.listOtps({ limit: 9 }, 0)).items.map(({ client_id }) => client_id)).toEqual(['a', 'b']);
  const types = (await store.listAudit({ limit: 9 })).items.map(({ type }) => type);
  expect(types).toEqual(['admin.access', 'otp.created', 'admin.access', 'otp.created']);
});

test('some rows at a time, answered in their order', async () => {
  let [activeRequests, most] = [0, 0];
  const { raw } = await adminFixture({
    wrapStore: (store) => ({
      ...store,
      insertOtp: async (...args) => {
        most = Math.max(most, ++activeRequests);
        await setImmediate();
        await store.insertOtp(...args);
        activeRequests--;
      },
    }),
  });
  const ids = Array.from({ length: 40 }, (_, n) => `device-${n}`);
  const rows = ids.map((client_id) => (client_id === 'device-7' ? '{' : JSON.stringify({ client_id })));
  const headers = { ...bearer, 'content-type': 'application/x-ndjson' };
  const answer = await raw('POST', '/admin/otp/bulk', headers, rows.join('\n'));
  const lines = answer.body.trimEnd().split('\n');
  expect(lines).toHaveLength(ids.length);
  for (const [n, id] of ids.entries()) expect(lines[n]).toContain(n === 7 ? 'ROW_INVALID' : `"${id}"`);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(16);
});

test('CSV in, CSV out', async () => {
  const { raw } = await adminFixture();
  const rows = `client_id,max_uses,expires_at\r\n"a, b",2,${at(NOW + 1000)}\r\nc,0,\r\n`;
  const answer = await raw('POST', '/admin/otp/bulk', { ...bearer, 'content-type': 'text/csv' }, rows);
  const [header, first = '', second = ''] = answer.body.split('\r\n');
  expect(header).toBe('id,client_id,ca,created_at,expires_at,max_uses,uses,status,token,row,code,message');
  expect(first).toMatch(/^[0-9a-f-]+,"a, b",,\S+Z,\S+Z,2,0,active,\S{20},,,$/);
  expect(second).toMatch(/^,,,,,,,,,3,FIELD_INVALID,"client_id ""[^"]+"": max_uses /);
});

test.each<[string, string, string, number]>([
  ['10,001 rows', 'application/x-ndjson', '{"client_id":"a"}\n'.repeat(10_001), 413],
  ['JSON', 'application/json', '{"client_id":"a"}', 415],
  ['an unknown column', 'text/csv', 'client_id,note\na,b', 400],
])('refused as a whole, and no token is made: %s', async (_, type, rows, statusCode) => {
  const { raw, store } = await adminFixture();
  const answer = await raw('POST', '/admin/otp/bulk', { ...bearer, 'content-type': type }, rows);
  expect(failure(answer).statusCode).toBe(statusCode);
  expect((await store.listOtps({ limit: 1 }, 0)).items).toEqual([]);
});

test('409 while one-time passwords are switched off', async () => {
  const { raw } = await adminFixture({ settings: { otp: { enabled: false } } });
  const answer = await raw('POST', '/admin/otp/bulk', { ...bearer, 'content-type': 'text/csv' }, 'client_id\na');
  expect(failure(answer)).toMatchObject({ statusCode: 409, code: 'OTP_DISABLED' });
});

test('a dry run checks every row, names row and client_id, estimates the time, and makes no token', async () => {
  const { raw, store } = await adminFixture();
  const rows = `client_id,max_uses,expires_at\r\na,,\r\nb,0,\r\nc,2,${at(NOW - 1000)}\r\n`;
  const answer = await raw('POST', '/admin/otp/bulk?dry_run=true', { ...bearer, 'content-type': 'text/csv' }, rows);
  expect([answer.statusCode, Number(answer.headers['estimated-seconds'])]).toEqual([200, expect.any(Number)]);
  expect(Number(answer.headers['estimated-seconds'])).toBeGreaterThan(0);
  const [header, ...lines] = answer.body.trimEnd().split('\r\n');
  expect(header).toBe('client_id,ca,expires_at,max_uses,row,code,message');
  expect(lines).toEqual([
    `a,,${at(NOW + DAY)},1,,,`,
    expect.stringMatching(/^,,,,3,FIELD_INVALID,"client_id ""b"": max_uses /),
    expect.stringMatching(/^,,,,4,FIELD_INVALID,"client_id ""c"": expires_at /),
  ]);
  expect((await store.listOtps({ limit: 1 }, 0)).items).toEqual([]);
  expect((await store.listAudit({ limit: 1 })).items).toEqual([]);
});
