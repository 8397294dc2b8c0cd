/** A server of a factory with a given number of certificates: most rows are made by SQL, without signatures. */
import { hash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import { insertCertificate } from '../../../src/store/certificate-store.ts';
import { runAtOnce } from '../../../src/store/port.ts';
import { type Db, openWritable } from '../../../src/store/sqlite/database.ts';
import { SqlitePort } from '../../../src/store/sqlite/port.ts';
import { searchIndexWrites } from '../../../src/store/sqlite/search/index-rows.ts';
import { STATISTICS_HOUR } from '../../../src/store/statistics-store.ts';
import { makeWorld, settle, type World } from '../../../test/console/world.ts';
import { onTheWire, simpleCsr } from '../../../test/support/csr.ts';

const DAY = 86_400_000;
const NOW = Date.now();
const KINDS = ['press', 'oven', 'robot', 'scale', 'valve', 'gate', 'lathe', 'pump', 'camera', 'sensor'];
const hex = (text: string): string => hash('sha256', text, 'hex');

/** With no certificate, the server is new. Otherwise it also has devices, tokens, pending requests and a month of statistics. */
export async function filledWorld(certificates: number): Promise<World> {
  const world = await makeWorld();
  if (certificates === 0) return world;
  await settle(world);
  const { estuary } = world;
  await estuary.server.stop();
  const db = openWritable(join(estuary.dir, 'data/est.db'));
  db.pragma('synchronous = OFF');
  fill(db, certificates);
  db.close();
  await estuary.restart();
  await startRenewals(world);
  return world;
}

/** Two devices renew, one under another name, and one has never enrolled. */
async function startRenewals({ estuary, key }: World): Promise<void> {
  for (const [device, name] of [
    ['kiln-1', 'kiln-1'],
    ['kiln-2', 'kiln-3'],
  ] as const) {
    const client = await estuary.enrolled(key, device);
    await estuary.est('cacerts', { client });
    await estuary.enroll(onTheWire(simpleCsr(key, name)), { path: 'simplereenroll', client });
  }
  await estuary.admin('POST', '/admin/devices', { id: 'kiln-4' });
}

function fill(db: Db, count: number): void {
  const have = db.prepare<[], { n: number }>('SELECT count(*) AS n FROM certificate').get()?.n ?? 0;
  const insert = insertCertificate(new SqlitePort(db));
  const device = db.prepare(
    `INSERT INTO device (key, id, enabled, match, match_key, attributes, note, created_at, changed_at) VALUES (?, ?, ?, NULL, NULL, '{}', ?, ?, ?)`,
  );
  const statistic = db.prepare(
    'INSERT INTO statistic (hour, ca, what, count) VALUES (?, ?, ?, ?) ON CONFLICT (hour, ca, what) DO UPDATE SET count = count + excluded.count',
  );
  db.transaction(() => {
    const put = (n: number): void => {
      const row = certificateOf(n, count);
      runAtOnce(insert(row, row.not_before));
    };
    // It has expired.
    put(0);
    for (let n = Math.max(1, have); n < count; n++) put(n);
    for (let n = 0; n < count / 4; n++) {
      const at = NOW - n * 3_600_000;
      device.run(
        `key-${n}`,
        nameOf(n),
        n % 17 === 0 ? 0 : 1,
        n % 11 === 5 ? `${LONG} `.repeat(4) : `hall ${(n % 6) + 1}`,
        at,
        at,
      );
    }
    for (const [hour, what, number] of activity(count)) statistic.run(hour, 'devices', what, number);
  })();
  const index = db.transaction(searchIndexWrites(db));
  while (index()) continue;
}

/** As long as real ones are: one in eleven. */
const LONG = 'assembly-line-4711.plant-ludwigshafen-am-rhein.production';

const nameOf = (n: number): string => `${KINDS[n % KINDS.length] ?? 'device'}-${100 + n}`;

/** The oldest first. Each lives for 397 days, so that some expire today. */
function certificateOf(n: number, count: number): CertificateRow {
  const name = n % 11 === 5 ? `${nameOf(n)}.${LONG}.example.com` : nameOf(n);
  const site = `hall${(n % 6) + 1}`;
  const not_before = NOW - DAY - Math.floor(((count - n) * 420 * DAY) / count);
  const serial = hex(`serial ${n}`).slice(0, 32);
  const isRevoked = n % 23 === 7;
  return {
    ca: n % 9 === 0 ? 'lab' : 'devices',
    label: null,
    serial,
    subject: `CN=${name},OU=${site},O=${n % 11 === 5 ? 'Factory Example International Holding GmbH & Co. KGaA,L=Ludwigshafen am Rhein,ST=Rheinland-Pfalz,C=DE' : 'Factory Example'}`,
    sans: [`DNS:${name}.factory.example`, `DNS:${name}.${site}.factory.example`, `IP:10.1.${n % 250}.7`],
    not_before,
    not_after: not_before + 397 * DAY,
    der: randomBytes(600),
    fingerprint_sha256: hex(`certificate ${n}`),
    requester: n % 3 === 0 ? `CN=${name},OU=${site},O=Factory Example` : name,
    method: n % 3 === 0 ? 'mtls' : 'otp',
    request_id: serial,
    device: n % 4 === 0 ? name : null,
    device_key: null,
    required_device: null,
    key_identifier: null,
    archived_key_id: null,
    revocation_challenge: null,
    revoked_at: isRevoked ? not_before + 30 * DAY : null,
    reason: isRevoked ? 'superseded' : null,
    invalidity_date: null,
  };
}

/** A month of working days: busy in the morning, nothing at night. */
function* activity(count: number): Generator<readonly [hour: number, what: string, number: number]> {
  const most = Math.max(3, Math.ceil(count / 2000));
  const now = Math.floor(NOW / STATISTICS_HOUR);
  for (let hour = now - 30 * 24; hour <= now; hour++) {
    const [ofDay, day] = [hour % 24, Math.floor(hour / 24) % 7];
    if (ofDay < 6 || ofDay > 18 || day > 4) continue;
    const share = 1 - Math.abs(ofDay - 10) / 12;
    yield [hour, 'issued', Math.round(most * share)];
    if (ofDay % 2 === 0) yield [hour, 'renewed', Math.round((most * share) / 2)];
    if (ofDay % 5 === 0) yield [hour, 'refused', Math.ceil(most / 9)];
    if (hour % 31 === 0) yield [hour, 'failed', 1];
    if (ofDay === 9) yield [hour, 'queued', 2];
  }
}
