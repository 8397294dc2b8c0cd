/**
 * What lists, exports and bulk tokens cost in a store of a given size. The rows are made by SQL, without signatures: what a list costs does
 * not depend on them. Prints a line for each figure, and exits with 1 where one is larger than it may be (issues 14.5 and 15.3).
 *
 *   scripts/bench-search [--certificates 1000000] [--tokens 100000] [--records 5000000] [--keep DIR [--fill-only]]
 */
import { hash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpService } from '../../../src/auth/otp/otp-service.ts';
import { everything } from '../../../src/http/admin/list.ts';
import type { Page, PageRequest } from '../../../src/store/page.ts';
import { insertCertificate } from '../../../src/store/sqlite/certificates.ts';
import { type Db, openWritable } from '../../../src/store/sqlite/database.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { searchIndexWrites } from '../../../src/store/sqlite/search/index-rows.ts';
import { STATISTICS_HOUR } from '../../../src/store/statistics-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { besideEmpty, crls } from './scale.ts';

const { values } = parseArgs({
  options: {
    certificates: { type: 'string', default: '1000000' },
    tokens: { type: 'string', default: '100000' },
    records: { type: 'string', default: '5000000' },
    keep: { type: 'string' },
    'fill-only': { type: 'boolean', default: false },
  },
});
const sizes = {
  certificates: Number(values.certificates),
  tokens: Number(values.tokens),
  records: Number(values.records),
};
const DAY = 86_400_000;
const now = Date.now();
/** The rows of three years, to this day. */
const START = now - 3 * 365 * DAY;
const timeOf = (n: number, of: number): number => START + Math.floor((n * (now - START)) / of);
const device = (n: number): string => `device-${String((n * 7919) % (sizes.certificates / 4)).padStart(7, '0')}`;
const hex = (text: string): string => hash('sha256', text, 'hex');

const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'estuary-search-'));
const path = join(folder, 'est.db');
const say = (what: string, figure: string): void => void process.stdout.write(`${what.padEnd(72)} ${figure}\n`);
const slow: string[] = [];
/** Notes what takes longer than it may. */
const limit = (what: string, took: number, most: number): void => {
  if (took > most) slow.push(`${what}: ${took.toFixed(1)}, more than ${most}`);
};
const ms = (since: number): string => `${(performance.now() - since).toFixed(1)} ms`;

function inBatches(db: Db, count: number, each: (n: number) => void): void {
  for (let from = 0; from < count; from += 20_000)
    db.transaction(() => {
      for (let n = from; n < Math.min(from + 20_000, count); n++) each(n);
    })();
}

function fill(db: Db): void {
  const insert = insertCertificate(db);
  const certificate = (n: number, count: number) => {
    const name = device(n);
    const at = timeOf(n, count);
    const serial = hex(`serial ${n}`).slice(0, 32);
    return {
      ca: n % 20 === 0 ? 'lab' : 'devices',
      label: null,
      serial,
      subject: `CN=${name},OU=Fleet,O=Example`,
      sans: [`DNS:${name}.fleet.example.com`],
      not_before: at,
      not_after: at + 397 * DAY,
      der: randomBytes(600),
      fingerprint_sha256: hex(`certificate ${n}`),
      requester: n % 4 === 0 ? name : 'CN=ra,O=Example',
      method: 'mtls',
      request_id: serial,
      device: name,
      device_key: null,
      key_identifier: null,
      archived_key_id: null,
      revocation_challenge: null,
      revoked_at: n % 10 === 7 ? at + DAY : null,
      reason: n % 10 === 7 ? 'superseded' : null,
      invalidity_date: null,
    };
  };
  inBatches(
    db,
    sizes.certificates,
    (n) => void insert(certificate(n, sizes.certificates), timeOf(n, sizes.certificates)),
  );
  const token = db.prepare(
    'INSERT INTO otp (id, lookup, hash, client_id, created_at, expires_at, max_uses, uses) VALUES (?, ?, ?, ?, ?, ?, 1, ?)',
  );
  inBatches(db, sizes.tokens, (n) => {
    const at = timeOf(n, sizes.tokens);
    token.run(`token-${n}`, hex(`token ${n}`), 'hmac-sha256:00', device(n), at, at + 30 * DAY, n % 3 === 0 ? 0 : 1);
  });
  const record = db.prepare('INSERT INTO audit (seq, time, type, line) VALUES (?, ?, ?, ?)');
  const TYPES = ['auth.mtls', 'request.received', 'ca.signature', 'certificate.issued', 'admin.access'];
  inBatches(db, sizes.records, (n) => {
    const at = timeOf(n, sizes.records);
    const type = TYPES[n % 5] ?? '';
    const of = Math.floor(n / 5);
    const line = {
      seq: n + 1,
      time: new Date(at).toISOString(),
      node: 'bench',
      type,
      outcome: 'success',
      subject: type === 'admin.access' ? 'the operator' : `CN=${device(of)},OU=Fleet,O=Example`,
      address: '192.0.2.1',
      ca: of % 20 === 0 ? 'lab' : 'devices',
      serial: type === 'certificate.issued' ? hex(`serial ${of}`).slice(0, 32) : undefined,
      request_id: hex(`serial ${of}`).slice(0, 32),
      prev_hash: hex('before'),
      hash: hex('this'),
    };
    record.run(n + 1, at, type, JSON.stringify(line));
  });
  db.prepare('UPDATE audit_head SET seq = ?, hash = ?, file_start = ?').run(
    sizes.records,
    hex('this'),
    sizes.records + 1,
  );

  const late = Array.from({ length: 2000 }, (_, n) => certificate(sizes.certificates + n, sizes.certificates));
  const since = performance.now();
  db.transaction(() => {
    for (const row of late) insert(row, now);
  })();
  say(
    'a certificate more, among many in a transaction',
    `${(((performance.now() - since) * 1000) / 2000).toFixed(0)} µs`,
  );
}

function index(db: Db): void {
  const writes = searchIndexWrites(db);
  const since = performance.now();
  let longest = 0;
  for (let more = true; more;) {
    const one = performance.now();
    more = db.transaction(() => writes.indexForSearch().value)();
    longest = Math.max(longest, performance.now() - one);
  }
  say(
    'all names indexed behind',
    `${((performance.now() - since) / 1000).toFixed(0)} s, the longest batch ${longest.toFixed(0)} ms`,
  );
}

/** Milliseconds that a page may take, the first or any next, and that the store may take to open. */
const [PAGE_LIMIT, OPEN_LIMIT] = [100, 2000];
/** How much more an enrolment or a look-up may cost than in an empty store. */
const RATIO_LIMIT = 1.5;

/** What else runs on the machine counts as little as may be. */
async function bestOfThree<T>(get: () => Promise<T>): Promise<{ page: T; took: number }> {
  const tries: { page: T; took: number }[] = [];
  for (let n = 0; n < 3; n++) {
    const since = performance.now();
    tries.push({ page: await get(), took: performance.now() - since });
  }
  return tries.reduce((best, one) => (one.took < best.took ? one : best));
}

/** The first pages of a list. */
async function pages(name: string, list: (page: PageRequest) => Promise<Page<unknown>>): Promise<void> {
  for (const order of ['asc', 'desc'] as const) {
    const times: number[] = [];
    let cursor: string | undefined;
    let found = 0;
    for (let n = 0; n < 10; n++) {
      const { page, took } = await bestOfThree(() => list({ limit: 100, order, cursor }));
      times.push(took);
      found += page.items.length;
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    const [first = 0, ...next] = times;
    const worst = next.length === 0 ? '' : `, the worst of ${next.length} next ${Math.max(...next).toFixed(1)} ms`;
    for (const time of times) limit(`${name}, ${order}, ms`, time, PAGE_LIMIT);
    say(`${name}, ${order}`, `${first.toFixed(1)} ms${worst} (${found} rows)`);
  }
}

async function lists(store: Store): Promise<void> {
  const name = device(12_345);
  const serial = hex('serial 4242').slice(0, 32);
  const soon = now + 30 * DAY;
  const certificates: Readonly<Record<string, object>> = {
    '': {},
    'ca=lab': { ca: 'lab' },
    'requester=(one of a quarter of a million)': { requester: name },
    'requester=(an RA’s)': { requester: 'CN=ra,O=Example' },
    'device=…': { device: name },
    'serial=…': { serial },
    'status=valid': { status: 'valid' },
    'status=expired': { status: 'expired' },
    'status=revoked': { status: 'revoked' },
    'status=valid&expires_before=(in 30 days)': { status: 'valid', expires_before: soon },
    'issued_after=(yesterday)': { issued_after: now - DAY },
    'subject=(a whole id)': { subject: name },
    'subject=(a common part)': { subject: 'device-' },
    'subject=(nobody)': { subject: 'zebra' },
    'subject=(two characters)': { subject: '77' },
    'san=(a part of one)': { san: `${name.slice(-6)}.fleet` },
    'ca=lab&status=expired&requester=(an RA’s)&subject=…': {
      ca: 'lab',
      status: 'expired',
      requester: 'CN=ra,O=Example',
      subject: '-000',
    },
  };
  for (const [query, filter] of Object.entries(certificates))
    await pages(`certificates ${query}`, (page) => store.listCertificates({ ...filter, ...page }, now));
  for (const [query, filter] of Object.entries({ '': {}, 'client_id=…': { client_id: name } }))
    await pages(`otp ${query}`, (page) => store.listOtps({ ...filter, ...page }, now));
  for (const status of ['active', 'consumed', 'expired', 'revoked'] as const)
    await pages(`otp status=${status}`, (page) => store.listOtps({ status, ...page }, now));
  const audit: Readonly<Record<string, object>> = {
    '': {},
    'type=certificate.issued': { type: 'certificate.issued' },
    'ca=lab': { ca: 'lab' },
    'serial=…': { serial },
    'request_id=…': { request_id: serial },
    'since=(a week ago)': { since: now - 7 * DAY },
    'until=(two years ago)&type=…': { until: now - 730 * DAY, type: 'ca.signature' },
    'subject=(a whole id)': { subject: name },
    'subject=(a common part)': { subject: 'device-' },
    'subject=(nobody)': { subject: 'zebra' },
    'since=(a week ago)&ca=lab&type=…&subject=…': {
      since: now - 7 * DAY,
      ca: 'lab',
      type: 'auth.mtls',
      subject: '-00',
    },
  };
  for (const [query, filter] of Object.entries(audit))
    await pages(`audit ${query}`, (page) => store.listAudit({ ...filter, ...page }));
}

/** What `GET /admin/overview` and `GET /admin/statistics` ask. */
async function overview(store: Store): Promise<void> {
  const ends = [1, 7, 14, 30, 60, 90, 180, 365].map((days) => now + days * DAY);
  const hour = STATISTICS_HOUR;
  const until = Math.floor(now / DAY) * DAY + DAY;
  const asked: Readonly<Record<string, () => Promise<unknown>>> = {
    'overview: certificates by their end': () => store.countCertificatesByEnd(now, ends),
    'overview: what waits': () => store.countWaiting(now),
    'statistics: a day of hours': () => store.countEvents({ since: until - DAY, until, interval: hour }),
    'statistics: 30 days': () => store.countEvents({ since: until - 30 * DAY, until, interval: DAY }),
    'statistics: 400 days': () => store.countEvents({ since: until - 400 * DAY, until, interval: DAY }),
    'statistics: 30 days of one CA': () =>
      store.countEvents({ since: until - 30 * DAY, until, interval: DAY, ca: 'lab' }),
  };
  for (const [name, get] of Object.entries(asked)) say(name, `${(await bestOfThree(get)).took.toFixed(1)} ms`);
}

async function exports(store: Store): Promise<void> {
  const since = performance.now();
  let rows = 0;
  let most = 0;
  for await (const row of everything(
    (page) => store.listCertificates(page, now),
    (one) => one,
  )) {
    rows += row.serial === '' ? 0 : 1;
    if (rows % 1000 === 0) most = Math.max(most, process.memoryUsage().rss);
  }
  const seconds = (performance.now() - since) / 1000;
  say(
    'all certificates, as an export reads them',
    `${seconds.toFixed(0)} s, ${Math.round(rows / seconds)} rows/s, at most ${Math.round(most / 2 ** 20)} MiB`,
  );
}

async function tokens(store: Store): Promise<void> {
  const otp = await OtpService.create(
    store,
    {
      hash_algorithm: 'sha256-hmac',
      hmacKey: randomBytes(32),
      lookupKey: randomBytes(32),
      argon2: { memory_kib: 19_456, iterations: 2, parallelism: 1 },
      bcrypt_cost: 12,
      token_length: 20,
      max_failures: 5,
      failure_window: 300,
      lockout_duration: 900,
      lockout_scope: 'address',
    },
    new HashingPool({ concurrency: 1, queue: 1, retryAfter: 1 }),
  );
  const count = 2000;
  const since = performance.now();
  for (let n = 0; n < count; n++)
    await otp.create({ client_id: `bulk-${n}`, max_uses: 1, expires_at: now + DAY, ca: null }, []);
  say(
    'tokens one after the other, as a bulk call makes them, sha256-hmac',
    `${Math.round((count * 60_000) / (performance.now() - since))} a minute`,
  );
}

async function make(): Promise<void> {
  say('rows', `${sizes.certificates} certificates, ${sizes.tokens} tokens, ${sizes.records} audit records`);
  // Its keys and files are made by the first start.
  await (await openStore({ path, auditFile: join(folder, 'audit.log') })).close();
  const db = openWritable(path);
  db.pragma('synchronous = OFF');
  const filled = performance.now();
  fill(db);
  say('filled in', ms(filled));
  index(db);
  db.close();
}

async function measure(): Promise<void> {
  const opened = performance.now();
  const store = await openStore({ path, auditFile: join(folder, 'audit.log') });
  say('the store opened', ms(opened));
  limit('the store opened, ms', performance.now() - opened, OPEN_LIMIT);
  await overview(store);
  await lists(store);
  await exports(store);
  await tokens(store);
  const empty = await openStore({ path: join(folder, 'empty.db'), auditFile: join(folder, 'empty.log') });
  for (const { what, ratio, figure } of await besideEmpty(empty, store)) {
    say(what, figure);
    limit(what, ratio, RATIO_LIMIT);
  }
  await empty.close();
  for (const [what, figure] of await crls(folder, store)) say(what, figure);
  await store.close();
  for (const line of slow) say('SLOW', line);
  if (slow.length > 0) process.exitCode = 1;
}

try {
  await make();
  if (!values['fill-only']) await measure();
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
