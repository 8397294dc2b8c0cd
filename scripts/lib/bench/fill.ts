/** Fills a store with rows of a given number, made by SQL and without signatures: what a list costs does not depend on them. */
import { hash } from 'node:crypto';
import { type CertificateRow, insertCertificate } from '../../../src/store/certificate-store.ts';
import { deviceMatchKey, type DeviceMatch } from '../../../src/store/device-match.ts';
import { runAtOnce } from '../../../src/store/port.ts';
import type { Db } from '../../../src/store/sqlite/database.ts';
import { SqlitePort } from '../../../src/store/sqlite/port.ts';
import { certificateRow, reservation } from '../../../test/store/rows.ts';
import { figure, measured, type Say } from './measure.ts';

export interface Sizes {
  readonly certificates: number;
  readonly tokens: number;
  readonly devices: number;
  readonly records: number;
}

const DAY = 86_400_000;
const NOW = Date.now();
/** The rows of three years, to this day. */
const START = NOW - 3 * 365 * DAY;
const timeOf = (n: number, of: number): number => START + Math.floor((n * (NOW - START)) / of);
const hex = (text: string): string => hash('sha256', text, 'hex');
export const serialOf = (n: number): string => hex(`serial ${n}`).slice(0, 32);

/** What one device of many is called. */
export const deviceName = (n: number, { certificates }: Pick<Sizes, 'certificates'>): string =>
  `device-${String((n * 7919) % (certificates / 4)).padStart(7, '0')}`;

/** What a registered device is found by. */
export const matchOf = (n: number): DeviceMatch => ({ issuer_spki_sha256: hex('maker'), serial_number: `SN-${n}` });

/** The n-th of so many certificates. */
function certificateOf(n: number, sizes: Sizes): CertificateRow {
  const name = deviceName(n, sizes);
  const at = timeOf(n, sizes.certificates);
  const serial = serialOf(n);
  const of = reservation({
    ca: n % 20 === 0 ? 'lab' : 'devices',
    serial,
    subject: `CN=${name},OU=Fleet,O=Example`,
    requester: n % 4 === 0 ? name : 'CN=ra,O=Example',
    request_id: serial,
  });
  return certificateRow(of, {
    sans: [`DNS:${name}.fleet.example.com`],
    not_before: at,
    not_after: at + 397 * DAY,
    fingerprint_sha256: hex(`certificate ${n}`),
    method: 'mtls',
    device: name,
    ...(n % 10 === 7 ? { revoked_at: at + DAY, reason: 'superseded' } : {}),
  });
}

/** Inserts the missing rows, and reports how long the indexes of all audit records take. */
export async function fill(db: Db, sizes: Sizes, say: Say): Promise<void> {
  const insert = insertCertificate(new SqlitePort(db));
  fillTable(db, 'certificate', sizes.certificates, (n) =>
    runAtOnce(insert(certificateOf(n, sizes), timeOf(n, sizes.certificates))),
  );
  const token = db.prepare(
    'INSERT INTO otp (id, lookup, hash, client_id, created_at, expires_at, max_uses, uses) VALUES (?, ?, ?, ?, ?, ?, 1, ?)',
  );
  fillTable(db, 'otp', sizes.tokens, (n) => {
    const at = timeOf(n, sizes.tokens);
    const uses = n % 3 === 0 ? 0 : 1;
    token.run(`token-${n}`, hex(`token ${n}`), 'hmac-sha256:00', deviceName(n, sizes), at, at + 30 * DAY, uses);
  });
  const device = db.prepare(
    `INSERT INTO device (key, id, enabled, match, match_key, attributes, created_at, changed_at) VALUES (?, ?, 1, ?, ?, '{}', ?, ?)`,
  );
  fillTable(db, 'device', sizes.devices, (n) => {
    const match = matchOf(n);
    device.run(`key-${n}`, `registered-${n}`, JSON.stringify(match), deviceMatchKey(match), START, START);
  });
  await fillAudit(db, sizes, say);
}

function fillTable(db: Db, table: string, count: number, each: (n: number) => void): void {
  const there = db.prepare<[], { n: number }>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
  for (let from = there; from < count; from += 20_000)
    db.transaction(() => {
      for (let n = from; n < Math.min(from + 20_000, count); n++) each(n);
    })();
}

const TYPES = ['auth.mtls', 'request.received', 'ca.signature', 'certificate.issued', 'admin.access'] as const;

/** The rows first, and then their indexes. */
async function fillAudit(db: Db, sizes: Sizes, say: Say): Promise<void> {
  const last = db.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM audit').get()?.seq ?? 0;
  if (last >= sizes.records) return;
  const indexes = db
    .prepare<[], { name: string; sql: string }>(
      `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'audit' AND sql IS NOT NULL`,
    )
    .all();
  for (const { name } of indexes) db.exec(`DROP INDEX ${name}`);
  const record = db.prepare('INSERT INTO audit (seq, time, type, line) VALUES (?, ?, ?, ?)');
  const [prev_hash, own_hash] = [hex('before'), hex('this')];
  fillTable(db, 'audit', sizes.records, (n) => {
    const at = timeOf(n, sizes.records);
    const type = TYPES[n % TYPES.length] ?? TYPES[0];
    const of = Math.floor(n / TYPES.length);
    const serial = serialOf(of);
    const line = {
      seq: n + 1,
      time: new Date(at).toISOString(),
      node: 'bench',
      type,
      outcome: 'success',
      subject: type === 'admin.access' ? 'the operator' : `CN=${deviceName(of, sizes)},OU=Fleet,O=Example`,
      address: '192.0.2.1',
      ca: of % 20 === 0 ? 'lab' : 'devices',
      serial: type === 'certificate.issued' ? serial : undefined,
      request_id: serial,
      prev_hash,
      hash: own_hash,
    };
    record.run(n + 1, at, type, JSON.stringify(line));
  });
  db.prepare('UPDATE audit_head SET seq = ?, hash = ?, file_start = ?, file_size = 0').run(
    sizes.records,
    own_hash,
    sizes.records + 1,
  );
  say('the indexes of audit records', figure(await measured(() => indexes.forEach(({ sql }) => db.exec(sql)))));
}
