/**
 * `scripts/bench search`: what lists, exports and bulk tokens cost in a store of a given size (fill.ts), and single operations (scale.ts).
 * Prints a line for each figure, and exits with 1 where one is larger than it may be.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpService } from '../../../src/auth/otp/otp-service.ts';
import { allRows, type Page, type PageRequest } from '../../../src/store/page.ts';
import { type Db, openWritable } from '../../../src/store/sqlite/database.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { searchIndexWrites } from '../../../src/store/sqlite/search/index-rows.ts';
import { STATISTICS_HOUR } from '../../../src/store/statistics-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { deviceName, fill, serialOf } from './fill.ts';
import { figure, measured, type Measured, type Say } from './measure.ts';
import { wholeNumber } from './options.ts';
import { besideEmpty, crls, OTP_ID, startUps } from './scale.ts';

const { values } = parseArgs({
  options: {
    certificates: { type: 'string', default: '1000000' },
    tokens: { type: 'string', default: '100000' },
    devices: { type: 'string', default: '100000' },
    records: { type: 'string', default: '5000000' },
    keep: { type: 'string' },
    'fill-only': { type: 'boolean', default: false },
  },
});
const size = (option: 'certificates' | 'tokens' | 'devices' | 'records'): number =>
  wholeNumber(values[option], 1_000_000_000, option);
const sizes = {
  certificates: size('certificates'),
  tokens: size('tokens'),
  devices: size('devices'),
  records: size('records'),
};
const DAY = 86_400_000;
const now = Date.now();

const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'estuary-search-'));
const path = join(folder, 'est.db');
const auditFile = join(folder, 'audit.log');
const say: Say = (what, result) => console.log(what.padEnd(72), result);
const slow: string[] = [];
/** Notes what takes longer than it may. */
const limit = (what: string, took: number, most: number): void => {
  if (took > most) slow.push(`${what}: ${took.toFixed(1)}, more than ${most}`);
};

async function indexNames(db: Db): Promise<void> {
  const batch = db.transaction(searchIndexWrites(db));
  let longest = 0;
  const { took } = await measured(async () => {
    for (let more = true; more;) {
      const one = await measured(batch);
      more = one.result;
      longest = Math.max(longest, one.took);
    }
  });
  say('all names indexed behind', `${(took / 1000).toFixed(0)} s, the longest batch ${longest.toFixed(0)} ms`);
}

/** Milliseconds that a page may take, the first or any next, one of the fleet, and that the store may take to open. */
const [PAGE_LIMIT, FLEET_PAGE_LIMIT, OPEN_LIMIT] = [100, 500, 2000];
/** How much more an enrollment or a look-up may cost than in an empty store. */
const RATIO_LIMIT = 1.5;
/** Of a bulk call, at least. */
const TOKENS_A_MINUTE = 10_000;
/** Rows of a bulk call at a time. */
const IN_HAND = 16;

async function bestOfThree<T>(get: () => Promise<T>): Promise<Measured<T>> {
  const tries = [await measured(get), await measured(get), await measured(get)];
  return tries.reduce((best, attempt) => (attempt.took < best.took ? attempt : best));
}

const slowest = (all: readonly Measured<unknown>[]): Measured<unknown> | undefined =>
  all.toSorted((a, b) => b.took - a.took)[0];

/** The first pages of a list. */
async function pages(
  name: string,
  list: (page: PageRequest) => Promise<Page<unknown>>,
  most = PAGE_LIMIT,
): Promise<void> {
  for (const order of ['asc', 'desc'] as const) {
    const all: Measured<Page<unknown>>[] = [];
    let cursor: string | undefined;
    do {
      const one = await bestOfThree(() => list({ limit: 100, order, cursor }));
      all.push(one);
      limit(`${name}, ${order}, ms`, one.took, most);
      cursor = one.result.next_cursor ?? undefined;
    } while (all.length < 10 && cursor !== undefined);
    const rows = all.reduce((sum, { result }) => sum + result.items.length, 0);
    const next = slowest(all.slice(1));
    const worst = next === undefined ? '' : `, the worst of ${all.length - 1} next ${figure(next)}`;
    say(`${name}, ${order}`, `${all.slice(0, 1).map(figure).join('')}${worst}, ${rows} rows`);
  }
}

async function lists(store: Store): Promise<void> {
  const name = deviceName(12_345, sizes);
  const serial = serialOf(4242);
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
  for (const [name, get] of Object.entries(asked)) say(name, figure(await bestOfThree(get)));
}

/** The fleet: its derivation from all certificates, as at the first start, its summary and its lists. */
async function fleet(store: Store): Promise<void> {
  for (const table of ['certificate', 'device']) await store.setFleetProgress(table, 0, null);
  const rules = {
    forget: 90 * DAY,
    expected: () => true,
    requiresDevices: () => false,
    authorities: new Set<string>(),
  };
  const window = ({ not_after }: { readonly not_after: number }) => ({
    start: not_after - 30 * DAY,
    end: not_after - DAY,
  });
  const { took, computed } = await measured(async () => {
    for (const table of ['certificate', 'device'] as const)
      while (await store.walkFleet(table, { ...rules, window, reports: false }, now));
  });
  const counts = await measured(() => store.countHolders());
  const holders = counts.result.reduce((sum, { n }) => sum + n, 0);
  say(`fleet: ${holders} holders in a state, derived`, figure({ took, computed }));
  say('fleet: the summary', `${figure(counts)}, ${figure(await bestOfThree(() => store.countExpiringHolders(now)))}`);
  const filters: Readonly<Record<string, object>> = {
    '': {},
    'state=late': { state: 'late' },
    'state=stuck (nobody)': { state: 'stuck' },
    'ca=lab': { ca: 'lab' },
    'device=…': { device: deviceName(12_345, sizes) },
    'subject=(nobody)': { subject: 'zebra' },
    'seen_before=(a day ago)&ca=lab': { seen_before: now - DAY, ca: 'lab' },
    'expires_before=(in 30 days)': { expires_before: now + 30 * DAY },
  };
  for (const [query, filter] of Object.entries(filters))
    await pages(`fleet ${query}`, (page) => store.listHolders({ ...filter, ...page }), FLEET_PAGE_LIMIT);
}

async function exports(store: Store): Promise<void> {
  let [rows, most] = [0, 0];
  const list = (page: PageRequest) => store.listCertificates(page, now);
  const { took } = await measured(async () => {
    for await (const { serial } of allRows(list)) {
      rows += serial === '' ? 0 : 1;
      if (rows % 1000 === 0) most = Math.max(most, process.memoryUsage().rss);
    }
  });
  const [seconds, mib] = [took / 1000, Math.round(most / 2 ** 20)];
  const rate = Math.round(rows / seconds);
  say('all certificates, as an export reads them', `${seconds.toFixed(0)} s, ${rate} rows/s, at most ${mib} MiB`);
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
  const { took, computed } = await measured(async () => {
    for (let from = 0; from < count; from += IN_HAND)
      await Promise.all(
        Array.from({ length: IN_HAND }, (_, n) =>
          otp.create({ client_id: `bulk-${from + n}`, max_uses: 1, expires_at: now + DAY, ca: null }, []),
        ),
      );
  });
  const aMinute = Math.round((count * 60_000) / took);
  say(
    'tokens as a bulk call makes them, sha256-hmac',
    `${aMinute} a minute (${((computed * 1000) / count).toFixed(0)} µs of computing each)`,
  );
  if (aMinute < TOKENS_A_MINUTE) slow.push(`tokens a minute: ${aMinute}, fewer than ${TOKENS_A_MINUTE}`);
}

async function singleOperations(store: Store): Promise<void> {
  const place = join(folder, 'empty');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  const empty = await openStore({ path: join(place, 'est.db'), auditFile: join(place, 'audit.log') });
  for (const [what, medians] of Object.entries(await besideEmpty(empty, store))) {
    const ratio = medians.full / medians.empty;
    const [large, small] = [medians.full, medians.empty].map((median) => `${median.toFixed(2)} ms`);
    say(`${what}, next to an empty store`, `${large}, ${small} in the empty one: ${ratio.toFixed(2)} times`);
    limit(what, ratio, RATIO_LIMIT);
  }
  await empty.close();
}

async function make(): Promise<void> {
  const { certificates, tokens, devices, records } = sizes;
  say('rows', `${certificates} certificates, ${tokens} tokens, ${devices} devices, ${records} audit records`);
  // Its keys and files are made by the first start.
  await (await openStore({ path, auditFile })).close();
  const db = openWritable(path);
  db.pragma('synchronous = OFF');
  say('filled in', figure(await measured(() => fill(db, sizes, say))));
  // What an earlier measurement left.
  db.prepare('DELETE FROM otp WHERE id = ?').run(OTP_ID);
  db.exec('DELETE FROM crl');
  await indexNames(db);
  db.close();
}

async function measure(): Promise<void> {
  const opened = await measured(() => openStore({ path, auditFile }));
  const store = opened.result;
  say('the store opened', figure(opened));
  limit('the store opened, ms', opened.took, OPEN_LIMIT);
  await overview(store);
  await lists(store);
  await fleet(store);
  await tokens(store);
  await singleOperations(store);
  await exports(store);
  for (const [what, result] of await crls(folder, store)) say(what, result);
  await store.close();
  const { full, empty } = await startUps(path, auditFile);
  say('the server started', `${figure(full)}; on an empty store ${figure(empty)}`);
  limit('the server started, ms more than on an empty store', full.took - empty.took, OPEN_LIMIT);
  for (const line of slow) say('SLOW', line);
  if (slow.length > 0) process.exitCode = 1;
}

try {
  await make();
  if (!values['fill-only']) await measure();
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
