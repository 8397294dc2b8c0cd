import { expect, test } from 'vitest';
import type { AuditEvent, AuditRecord } from '../../src/audit/event.ts';
import { chain, follows, GENESIS_HASH, parseLine } from '../../src/audit/record.ts';
import { openssl } from '../support/openssl.ts';

const GENESIS = { seq: 0, hash: GENESIS_HASH };
const TIME = Date.UTC(2026, 10, 21, 1, 2, 3, 4);
const EVENT: AuditEvent = {
  detail: 'two\nlines, a "quote" and ü',
  request_id: 'r1',
  serial: '0a0b',
  ca: 'devices',
  address: '192.0.2.1',
  subject: 'CN=device-1',
  outcome: 'success',
  type: 'certificate.issued',
};

test('a record is one line of JSON with its fields in a fixed order, whatever the order of the event', () => {
  const { line, hash } = chain(GENESIS, EVENT, TIME);
  expect(line).toBe(
    '{"seq":1,"time":"2026-11-21T01:02:03.004Z","type":"certificate.issued","outcome":"success",' +
      '"subject":"CN=device-1","address":"192.0.2.1","ca":"devices","serial":"0a0b","request_id":"r1",' +
      `"detail":"two\\nlines, a \\"quote\\" and ü","prev_hash":"${GENESIS_HASH}","hash":"${hash}"}`,
  );
});

test('the hash is SHA-256 over the line without the hash, as openssl computes it', () => {
  const { line, hash } = chain(GENESIS, EVENT, TIME);
  const canonical = line.replace(`,"hash":"${hash}"`, '');
  const digest = openssl(['dgst', '-sha256', '-binary'], canonical).toString('hex');
  expect(hash).toBe(digest);
});

test('each record holds the hash of the one before it', () => {
  const first = chain(GENESIS, EVENT, TIME);
  const second = chain(first, { type: 'service.stop', outcome: 'success' }, TIME + 1);
  const parsed = parseLine(second.line);
  expect(parsed).toMatchObject({
    seq: 2,
    time: TIME + 1,
    type: 'service.stop',
    prev_hash: first.hash,
    hash: second.hash,
  });
  expect(parsed !== undefined && follows(first, parsed)).toBe(true);
  expect(parsed !== undefined && follows(GENESIS, parsed)).toBe(false);
});

test('fields that are absent are left out', () => {
  const { line } = chain(GENESIS, { type: 'service.start', outcome: 'success' }, TIME);
  expect(Object.keys(JSON.parse(line) as object)).toEqual(['seq', 'time', 'type', 'outcome', 'prev_hash', 'hash']);
});

test("a record names the node, the requester with its certificate's issuer, the issued names, archived records", () => {
  const event: AuditEvent = {
    ...EVENT,
    method: 'mtls',
    requester_issuer: 'CN=Maker',
    requester_sans: ['DNS:old.example.com'],
    certificate_subject: 'CN=device-1',
    certificate_sans: ['DNS:new.example.com', 'IP:192.0.2.1'],
    certificate_not_after: '2027-01-01T00:00:00.000Z',
    archived: { first: 1, last: 7, hash: GENESIS_HASH },
  };
  const { line } = chain(GENESIS, event, TIME, 'node-1');
  const { hash, ...record } = JSON.parse(line) as Record<string, unknown>;
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(record).toEqual({
    seq: 1,
    time: '2026-11-21T01:02:03.004Z',
    node: 'node-1',
    ...event,
    prev_hash: GENESIS_HASH,
  });
  expect(parseLine(line)).toMatchObject({ seq: 1, archived: event.archived });
  expect(parseLine(line.replace('CN=Maker', 'CN=Other'))).toBeUndefined();
  expect(parseLine(line.replace('node-1', 'node-2'))).toBeUndefined();
});

test('an empty list of names is left out, a long one is cut', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `DNS:host-${i}.example.com`);
  const sansOf = (event: Partial<AuditEvent>) =>
    (JSON.parse(chain(GENESIS, { ...EVENT, ...event }, TIME).line) as AuditRecord).certificate_sans;
  expect(sansOf({ certificate_sans: [] })).toBeUndefined();
  expect(sansOf({ certificate_sans: names(20) })).toEqual(names(20));
  const cut = sansOf({ certificate_sans: names(1000) }) ?? [];
  expect(cut.length).toBeLessThan(120);
  expect(cut.slice(0, -1)).toEqual(names(cut.length - 1));
  expect(cut.at(-1)).toBe('…');
});

test('a record of another version verifies, whatever fields it has', () => {
  const canonical = `{"seq":1,"time":"2026-11-21T01:02:03.004Z","type":"new.type","new":{"field":[1]},"prev_hash":"${GENESIS_HASH}"}`;
  const hash = openssl(['dgst', '-sha256', '-binary'], canonical).toString('hex');
  expect(parseLine(`${canonical.slice(0, -1)},"hash":"${hash}"}`)).toMatchObject({ seq: 1, type: 'new.type', hash });
});

test('an oversized field is cut, so that a request cannot fill the audit log', () => {
  const { line } = chain(GENESIS, { ...EVENT, subject: 'x'.repeat(60_000) }, TIME);
  expect(line.length).toBeLessThan(3000);
  expect(parseLine(line)).toBeDefined();
});

const good = chain(GENESIS, EVENT, TIME).line;
test.each([
  ['empty', ''],
  ['no JSON', 'seq 1'],
  ['another JSON value', '[1]'],
  ['null', 'null'],
  ['no record', '{}'],
  ['seq that is no number', good.replace('"seq":1', '"seq":"1"')],
  ['seq that was changed', good.replace('"seq":1', '"seq":2')],
  ['invalid time', good.replace('2026-11-21', '2026-99-21')],
  ['a field that was changed', good.replace('device-1', 'device-2')],
  ['a field that was removed', good.replace('"ca":"devices",', '')],
  ['a field that was added', good.replace('"seq"', '"note":"x","seq"')],
  [
    'fields in another order',
    good.replace('"seq":1,"time":"2026-11-21T01:02:03.004Z"', '"time":"2026-11-21T01:02:03.004Z","seq":1'),
  ],
  ['white space', good.replace('"seq":1', '"seq": 1')],
  ['a field given twice', good.replace('"seq":1', '"seq":1,"seq":1')],
  ['another prev_hash', good.replace(GENESIS_HASH, 'f'.repeat(64))],
  ['no hash', good.replace(/,"hash":"[0-9a-f]+"/, '')],
  ['bytes behind it', `${good} `],
])('a line is refused: %s', (_name, line) => {
  expect(parseLine(good)).toBeDefined();
  expect(line).not.toBe(good);
  expect(parseLine(line)).toBeUndefined();
});
