/** The parts of the console that need no browser. */
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { AUDIT_TYPES, type AuditEvent } from '../../src/audit/event.ts';
import { HASHED_FIELDS } from '../../src/audit/hashed-fields.ts';
import { chain, GENESIS_HASH } from '../../src/audit/record.ts';
import { hashOf } from '../../console/src/shared/audit-hash.ts';
import { AUDIT_TYPES as SHOWN_TYPES } from '../../console/src/shared/audit-types.ts';
import { estUrl, qrText, readyLines } from '../../src/ready-lines.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { parseCsv } from '../../console/src/shared/csv.ts';
import { isUuid, serialOf } from '../../console/src/shared/find.ts';
import { inWords, type Happened } from '../../console/src/pages/history-words.ts';
import { profileInWords } from '../../console/src/pages/profile-words.ts';
import { ago, dateOf, exactTime, shortTime, startOfDay } from '../../console/src/ui/time.ts';

test('the console offers every kind of audit event that there is', () => {
  expect(SHOWN_TYPES).toEqual(AUDIT_TYPES);
});

test('the fields of the hash are all that a record can have, in their order', () => {
  const all = Object.fromEntries(HASHED_FIELDS.map((name) => [name, 'x']));
  const event = {
    ...all,
    type: 'audit.checkpoint',
    outcome: 'success',
    requester_sans: ['a'],
    certificate_sans: ['b'],
  };
  const { line } = chain({ seq: 0, hash: GENESIS_HASH }, event as unknown as AuditEvent, 0, 'node-1', 1);
  expect(Object.keys(JSON.parse(line) as object)).toEqual([...HASHED_FIELDS, 'hash']);
});

describe('the hash of an audit record, in whatever order its fields come', () => {
  const from = { address: '192.0.2.7', request_id: 'a-b', detail: 'a “detail”, <b>\u2028' };
  const names = { requester_sans: ['DNS:a'], certificate_sans: ['DNS:b', 'IP:192.0.2.1'] };
  const checkpoint = { seq: 6, hash: 'c'.repeat(64), signature: 'c2ln' };
  test.each([
    [
      'of a certificate',
      {
        type: 'certificate.issued',
        outcome: 'success',
        subject: 'a',
        method: 'otp',
        ca: 'x',
        serial: '0a',
        ...names,
        ...from,
      },
    ],
    ['of a checkpoint', { type: 'audit.checkpoint', outcome: 'success', checkpoint }],
    [
      'of an archive',
      { type: 'audit.archived', outcome: 'success', archived: { first: 1, last: 5, hash: 'd'.repeat(64) } },
    ],
  ] as const)('%s', async (_what, event) => {
    const { line, hash } = chain({ seq: 6, hash: GENESIS_HASH }, event, Date.UTC(2026, 10, 22), 'node-1');
    const record: unknown = JSON.parse(line);
    if (typeof record !== 'object' || record === null) throw new TypeError('no record');
    const turned = Object.fromEntries(Object.entries(record).reverse());
    expect(await hashOf(turned)).toBe(hash);
    expect(await hashOf({ ...turned, outcome: 'failure' })).not.toBe(hash);
  });
});

describe('history in words', () => {
  const by = { subject: 'Ada' };
  test.each<[Partial<Happened>, string | RegExp]>([
    [{ type: 'certificate.issued', operation: 'simplereenroll' }, 'Certificate renewed'],
    [
      { type: 'certificate.issued', certificate_not_after: '2027-01-02T03:04:05Z' },
      'Certificate issued until 2027-01-02',
    ],
    [
      { type: 'certificate.denied', operation: 'simplereenroll', reason: 'name `x` is not allowed' },
      'Renewal rejected: name `x` is not allowed',
    ],
    [{ type: 'certificate.denied', operation: 'fullcmc' }, 'CMC request rejected'],
    [
      { type: 'certificate.revoked', ...by, revocation_reason: 'keyCompromise' },
      'Certificate revoked by Ada: keyCompromise',
    ],
    [{ type: 'certificate.expiring', days: 7 }, 'Certificate expires within 7 days'],
    ...(['expired', 'failing', 'stuck', 'late'] as const).map((state): [Partial<Happened>, RegExp] => [
      { type: `holder.${state}` },
      new RegExp(`^${state}: `, 'i'),
    ]),
    [{ type: 'request.rejected', ...by, reason: 'not ours' }, 'Request rejected by Ada: not ours'],
    [{ type: 'device.changed', ...by, device_enabled: false }, 'Device disabled by Ada'],
    [{ type: 'device.changed', ...by }, 'Device changed by Ada'],
    [{ type: 'auth.mtls', outcome: 'failure', reason: 'it is revoked' }, 'The certificate was rejected: it is revoked'],
    [{ type: 'auth.otp' }, 'Authenticated with a one-time password'],
    [{ type: 'auth.admin' }, 'auth.admin'],
    [{ type: 'crl.issued' }, 'crl.issued'],
  ])('%j', (fields, words) => {
    expect(inWords({ seq: 1, time: '', type: 'service.start', outcome: 'success', ...fields })).toEqual(
      typeof words === 'string' ? words : expect.stringMatching(words),
    );
  });
});

describe('what is searched for', () => {
  test.each([
    ['0A:1b:FF', '0a1bff'],
    ['0x0a1b', '0a1b'],
    ['00:ff:01', 'ff01'],
    ['00 0a', '0a'],
    ['abc', '0abc'],
    ['a1'.repeat(20), 'a1'.repeat(20)],
    ['00' + 'a1'.repeat(20), 'a1'.repeat(20)],
    ['a1'.repeat(21), undefined],
    ['press-1', undefined],
    ['', undefined],
  ])('a serial number in any form: %s', (text, serial) => {
    expect(serialOf(text)).toBe(serial);
  });

  test('an ID of a record', () => {
    expect(['92f924cc-1111-4222-8333-0123456789ab', 'press-1'].map(isUuid)).toEqual([true, false]);
  });
});

describe('CSV of a preview (RFC 4180)', () => {
  test.each([
    ['a,b\n1,2\n', [['1', '2']]],
    ['a,b\r\n1,2\r\n', [['1', '2']]],
    ['a,b\n1,2', [['1', '2']]],
    ['\ufeffa,b\n1,', [['1', '']]],
    ['a,b\n"1, ""one""","2\n3"\n', [['1, "one"', '2\n3']]],
    ['a,b\n\n1,2\n\n', [['1', '2']]],
    ['a,b\n"not closed,2', [['"not closed', '2']]],
    ['a,b', []],
  ])('%j', (text, rows) => {
    expect(parseCsv(text)).toEqual({ header: ['a', 'b'], rows });
  });

  test('of nothing is nothing', () => {
    expect(parseCsv('')).toEqual({ header: [], rows: [] });
  });
});

describe('times', () => {
  const now = Date.UTC(2026, 10, 22, 12);
  test.each([
    [0, 'just now'],
    [-90_000, '1 minute ago'],
    [3 * 3_600_000, 'in 3 hours'],
    [29.5 * 86_400_000, 'in 29 days'],
    [-400 * 86_400_000, '13 months ago'],
    [10 * 366 * 86_400_000, 'in 10 years'],
  ])('%i ms away: %s', (distance, words) => {
    expect(ago(new Date(now + distance).toISOString(), now)).toBe(words);
  });

  test('exactly, in a time zone', () => {
    expect(exactTime('2026-11-22T12:00:01.234Z')).toBe('2026-11-22 12:00:01 UTC');
    expect(exactTime('2026-11-22T23:00:01Z', 'Europe/Berlin')).toBe('2026-11-23 00:00:01 CET');
    expect(shortTime('2026-11-22T23:00:01Z', 'Europe/Berlin')).toBe('2026-11-23 00:00');
    expect(exactTime('never')).toBe('never');
  });

  test.each([
    ['2026-11-22', 'UTC', '2026-11-22T00:00:00Z'],
    ['2026-11-22', 'Asia/Kolkata', '2026-11-21T18:30:00Z'],
    // The clocks change on this day and on the next.
    ['2026-03-29', 'Europe/Berlin', '2026-03-28T23:00:00Z'],
    ['2026-03-30', 'Europe/Berlin', '2026-03-29T22:00:00Z'],
    ['2026-10-25', 'America/New_York', '2026-10-25T04:00:00Z'],
    ['', 'UTC', undefined],
  ])('the day %s in %s begins at %s', (date, zone, start) => {
    expect(startOfDay(date, zone)).toBe(start);
    if (start !== undefined) expect(dateOf(start, zone)).toBe(date);
  });
});

describe('ready lines', () => {
  const enrollment = {
    est: 'https://est.example:9443/.well-known/est',
    label: undefined,
    clientId: 'press-1',
    token: 'tok',
    anchors: undefined,
  };

  /** The words of a line, as a shell reads them. */
  const words = (line: string): readonly string[] =>
    execFileSync('sh', ['-c', `printf '%s\\n' ${line}`], { encoding: 'utf8' })
      .split('\n')
      .slice(0, -1);

  test.each([
    'press-1',
    'a b',
    ' a ',
    'it\'s $(reboot) `x` \\ "y"',
    'a/b+c=d,e;f#g',
    'host/press.example@EXAMPLE.COM',
    'Prüfstand 7 🔧',
  ])('%j: names and credentials come out of the shell as they are', (clientId) => {
    const { client, curl } = readyLines({ ...enrollment, clientId });
    const [request = '', send = ''] = curl.split('\n');
    const asked = words(client.replace(/^EST_OTP=\S+ /, ''));
    const name = parseDistinguishedName(asked[asked.indexOf('--subject') + 1] ?? '');
    expect(name.rdns.flat().map(({ text }) => text)).toEqual([clientId]);
    expect(asked[asked.indexOf('--username') + 1]).toBe(clientId);
    const made = words(request);
    // openssl: a backslash takes away what the next character means.
    expect(made[made.indexOf('-subj') + 1]?.replaceAll(/\\(.)/g, '$1')).toBe(`/CN=${clientId}`);
    // Not in the arguments of a process: printf is part of the shell. A file of curl has its own quotes.
    const [credential = '', sent = ''] = send.split(' | ');
    expect(words(credential)[2]?.replaceAll(/\\(.)/g, '$1')).toBe(`${clientId}:tok`);
    expect(words(sent).slice(0, 4)).toEqual(['curl', '-sSf', '-K', '-']);
    expect(made[made.indexOf('-out') + 1]).toMatch(/^[\w.-]+\.csr$/);
  });

  test('a colon, which ends a user name, is in none; labels and anchors are where they belong', () => {
    const { client, curl } = readyLines({ ...enrollment, clientId: 'a:b', label: 'lab 1', anchors: '/etc/my ca.pem' });
    expect(client).toContain(
      "--url https://est.example:9443 --ca '/etc/my ca.pem' --label 'lab 1' --subject CN=a:b --username device",
    );
    expect(curl).toContain(
      "printf 'user = \"%s\"\\n' device:tok | curl -sSf -K - --cacert '/etc/my ca.pem' -H 'Content-Type: application/pkcs10' --data-binary @a_b.csr https://est.example:9443/.well-known/est/lab%201/simpleenroll",
    );
  });

  test.each([
    ['https://a', 'https://a/.well-known/est'],
    ['https://a:9443/', 'https://a:9443/.well-known/est'],
    ['https://a/.well-known/est', 'https://a/.well-known/est'],
    ['https://a/proxied/est/', 'https://a/proxied/est'],
    ['http://a', undefined],
    ['https://u@a', undefined],
    ['https://a?b', undefined],
    ['a', undefined],
  ])('the address %s: %s', (address, url) => {
    expect(estUrl(address)).toBe(url);
  });

  test('what the code says', () => {
    expect(JSON.parse(qrText({ ...enrollment, label: 'lab' }))).toEqual({
      est: enrollment.est,
      label: 'lab',
      client_id: 'press-1',
      token: 'tok',
    });
  });
});

describe('a CA’s profile in words', () => {
  const values = {
    label: 'devices',
    approval: 'manual',
    approvals: 2,
    devices: 'required',
    'profile.validity_days': 397,
    'profile.max_validity_days': 825,
    'profile.renewal_grace_days': 1,
    'profile.key_types': ['ec:P-256', 'rsa:2048'],
    'profile.key_usage': ['digitalSignature'],
    'profile.extended_key_usage': ['clientAuth'],
    'profile.subject.required': ['CN'],
    'profile.san.allowed': ['dns'],
    'profile.san.required': [],
    'profile.san.max': 4,
    'profile.san.wildcards': false,
    'profile.allow_subject_change': false,
    'profile.mtls_subject': 'match',
    'profile.policies': [],
  };

  test('its rules, and those that have no sentence', () => {
    expect(profileInWords(new Map(Object.entries(values)))).toEqual({
      words: [
        '2 administrators must approve each request.',
        'Only registered devices get certificates.',
        'A certificate is valid for 397 days, and at most for 825 days.',
        'It can be renewed until 1 day after it expires.',
        'Key types: ec:P-256, rsa:2048.',
        'Key usage: digitalSignature, clientAuth.',
        'The subject must have CN.',
        'Other names: at most 4, of the types dns; no wildcards.',
        'A renewal keeps the names.',
      ],
      further: [['mtls_subject', 'match']],
    });
  });

  test.each([
    [{ approval: 'auto' }, 'Certificates are issued immediately.'],
    [{ 'profile.subject.template': 'CN={id},O=Example' }, 'The subject is CN={id},O=Example.'],
    [
      { 'profile.subject.required': [], 'profile.subject.allowed': ['CN', 'O'] },
      'The subject may be any name, with only CN, O.',
    ],
    [{ 'profile.san.allowed': [] }, 'Other names are not allowed.'],
    [{ 'profile.san.add': ['dns:{id}.example'] }, 'Added names: dns:{id}.example.'],
    [{ 'profile.renewal_grace_days': 0 }, 'It can be renewed until it expires.'],
  ])('%j', (changed, sentence) => {
    expect(profileInWords(new Map(Object.entries({ ...values, ...changed }))).words).toContain(sentence);
  });
});
