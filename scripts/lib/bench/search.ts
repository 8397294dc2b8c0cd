/**
 * What lists, exports and bulk tokens cost in a store of a given size. The rows are made by SQL, without signatures: what a list costs does
 * not depend on them. Prints a line for each figure, and exits with 1 where one is larger than it may be.
 * scripts/bench-search describes the options.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpService } from '../../../src/auth/otp/otp-service.ts';
import { everything } from '../../../src/http/admin/route.ts';
import type { Page, PageRequest } from '../../../src/store/page.ts';
import { type Db, openWritable } from '../../../src/store/sqlite/database.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { searchIndexWrites } from '../../../src/store/sqlite/search/index-rows.ts';
import { STATISTICS_HOUR } from '../../../src/store/statistics-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { besideEmpty, crls } from './scale.ts';
import { deviceName, fill, hex } from './search-rows.ts';
import { startUps } from './start-up.ts';
import { OTP_ID } from './store-work.ts';

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
const sizes = {
  certificates: Number(values.certificates),
  tokens: Number(values.tokens),
  devices: Number(values.devices),
  records: Number(values.records),
};
const DAY = 86_400_000;
const now = Date.now();

const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'estuary-search-'));
const path = join(folder, 'est.db');
const auditFile = join(folder, 'audit.log');
const say = (what: string, figure: string): void => void process.stdout.write(`${what.padEnd(72)} ${figure}\n`);
const slow: string[] = [];
/** Notes what takes longer than it may. */
const limit = (what: string, took: number, most: number): void => {
  if (took > most) slow.push(`${what}: ${took.toFixed(1)}, more than ${most}`);
};
const ms = (since: number): string => `${(performance.now() - since).toFixed(1)} ms`;

function index(db: Db): void {
  const batch = db.transaction(searchIndexWrites(db));
  const since = performance.now();
  let longest = 0;
  for (let more = true; more;) {
    const one = performance.now();
    more = batch();
    longest = Math.max(longest, performance.now() - one);
  }
  say(
    'all names indexed behind',
    `${((performance.now() - since) / 1000).toFixed(0)} s, the longest batch ${longest.toFixed(0)} ms`,
  );
}

/** Milliseconds that a page may take, the first or any next, and that the store may take to open. */
const [PAGE_LIMIT, OPEN_LIMIT] = [100, 2000];
/** How much more an enrollment or a look-up may cost than in an empty store. */
const RATIO_LIMIT = 1.5;
/** Of a bulk call, at least. */
const TOKENS_A_MINUTE = 10_000;
/** Rows of a bulk call at a time. */
const IN_HAND = 16;

/** Milliseconds that a call took, and those of computing in it: what else runs on the machine counts in the first only. */
interface Took<T> {
  readonly page: T;
  readonly took: number;
  readonly computed: number;
}

const computing = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

async function measured<T>(get: () => Promise<T>): Promise<Took<T>> {
  const [since, cpu] = [performance.now(), process.cpuUsage()];
  const page = await get();
  return { page, took: performance.now() - since, computed: computing(process.cpuUsage(cpu)) };
}

async function bestOfThree<T>(get: () => Promise<T>): Promise<Took<T>> {
  const tries = [await measured(get), await measured(get), await measured(get)];
  return tries.reduce((best, one) => (one.took < best.took ? one : best));
}

const both = ({ took, computed }: Omit<Took<unknown>, 'page'>): string =>
  `${took.toFixed(1)} ms (${computed.toFixed(1)} of computing)`;
const most = (of: readonly Took<unknown>[]): Omit<Took<unknown>, 'page'> => ({
  took: Math.max(...of.map(({ took }) => took)),
  computed: Math.max(...of.map(({ computed }) => computed)),
});

/** The first pages of a list. */
async function pages(name: string, list: (page: PageRequest) => Promise<Page<unknown>>): Promise<void> {
  for (const order of ['asc', 'desc'] as const) {
    const all: Took<Page<unknown>>[] = [];
    let cursor: string | undefined;
    let found = 0;
    for (let n = 0; n < 10; n++) {
      const one = await bestOfThree(() => list({ limit: 100, order, cursor }));
      all.push(one);
      found += one.page.items.length;
      if (one.page.next_cursor === null) break;
      cursor = one.page.next_cursor;
    }
    const next = all.slice(1);
    const worst = next.length === 0 ? '' : `, the worst of ${next.length} next ${both(most(next))}`;
    for (const { took } of all) limit(`${name}, ${order}, ms`, took, PAGE_LIMIT);
    say(`${name}, ${order}`, `${both(most(all.slice(0, 1)))}${worst}, ${found} rows`);
  }
}

async function lists(store: Store): Promise<void> {
  const name = deviceName(12_345, sizes);
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
  for (const [name, get] of Object.entries(asked)) say(name, both(await bestOfThree(get)));
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

async function make(): Promise<void> {
  say(
    'rows',
    `${sizes.certificates} certificates, ${sizes.tokens} tokens, ${sizes.devices} devices, ${sizes.records} audit records`,
  );
  // Its keys and files are made by the first start.
  await (await openStore({ path, auditFile })).close();
  const db = openWritable(path);
  db.pragma('synchronous = OFF');
  const filled = performance.now();
  fill(db, sizes, say);
  say('filled in', ms(filled));
  // Of a measuring before.
  db.prepare('DELETE FROM otp WHERE id = ?').run(OTP_ID);
  db.exec('DELETE FROM crl');
  for (const file of ['empty.db', 'empty.db-wal', 'empty.db-shm', 'empty.log'])
    rmSync(join(folder, file), { force: true });
  index(db);
  db.close();
}

async function measure(): Promise<void> {
  const { page: store, ...opened } = await measured(() => openStore({ path, auditFile }));
  say('the store opened', both(opened));
  limit('the store opened, ms', opened.took, OPEN_LIMIT);
  await overview(store);
  await lists(store);
  await tokens(store);
  const empty = await openStore({ path: join(folder, 'empty.db'), auditFile: join(folder, 'empty.log') });
  for (const { what, ratio, figure } of await besideEmpty(empty, store)) {
    say(what, figure);
    limit(what, ratio, RATIO_LIMIT);
  }
  await empty.close();
  await exports(store);
  for (const [what, figure] of await crls(folder, store)) say(what, figure);
  await store.close();
  const { full, empty: fresh } = await startUps(folder, { path, auditFile });
  say(
    'the server started',
    `${full.seconds.toFixed(1)} s, ${full.cpu.toFixed(1)} s of computing; on a new store ${fresh.seconds.toFixed(1)} s, ${fresh.cpu.toFixed(1)} s`,
  );
  limit('the server started, s more than on a new store', full.seconds - fresh.seconds, OPEN_LIMIT / 1000);
  for (const line of slow) say('SLOW', line);
  if (slow.length > 0) process.exitCode = 1;
}

try {
  await make();
  if (!values['fill-only']) await measure();
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
