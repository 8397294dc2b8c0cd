/** Lists are cheap with any filter, and find the same rows with and without the search index. */
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditFilter } from '../../../src/store/audit-store.ts';
import type { CertificateFilter, CertificateRow } from '../../../src/store/certificate-store.ts';
import type { Page } from '../../../src/store/page.ts';
import { insertCertificate } from '../../../src/store/certificate-store.ts';
import { commonReads } from '../../../src/store/store.ts';
import { runAtOnce } from '../../../src/store/port.ts';
import { auditReads } from '../../../src/store/sqlite/audit.ts';
import { addFunctions, type Db, openWritable } from '../../../src/store/sqlite/database.ts';
import { SqlitePort } from '../../../src/store/sqlite/port.ts';
import { certificateList } from '../../../src/store/sqlite/search/certificate-search.ts';
import { searchIndexReads, searchIndexWrites } from '../../../src/store/sqlite/search/index-rows.ts';
import { holderWrites } from '../../../src/store/holder-store.ts';
import { useWrites } from '../../../src/store/use-store.ts';
import { certificateRow, reservation, T0 } from '../rows.ts';
import { atOnce } from './at-once.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const DAY = 86_400_000;
const NOW = T0 + 500 * DAY;
/** Steps so small that every list takes many. */
const LIMITS = { step: 150, maxWait: 1000 };
const CERTIFICATES = 1300;
const RECORDS = 4500;

const folder = temporaryFolder();
let db: Db;
let path: string;
const rows: CertificateRow[] = [];
const issuedAt = (n: number): number => T0 + Math.floor(n / 4) * DAY;

function fill(): void {
  const insert = insertCertificate(new SqlitePort(db));
  const audit = db.prepare('INSERT INTO audit (seq, time, type, line, indexed) VALUES (?, ?, ?, ?, 0)');
  db.transaction(() => {
    for (let n = 0; n < CERTIFICATES; n++) {
      const name = `Device-${n % 900}`;
      const row = certificateRow(reservation({ ca: n % 3 === 0 ? 'lab' : 'devices', subject: `CN=${name},O=Größe` }), {
        sans: [`DNS:${name}.example`, `URI:urn:x:${n}`],
        not_after: issuedAt(n) + (n % 5 === 0 ? 3 : 200) * DAY,
        requester: n % 2 === 0 ? 'CN=ra' : name,
        device: n % 7 === 0 ? name : null,
        device_key: n % 7 === 0 ? `key-${name}` : null,
        ...(n % 11 === 0 ? { revoked_at: NOW - 1, reason: 'superseded' } : {}),
      });
      runAtOnce(insert(row, issuedAt(n)));
      rows.push(row);
    }
    for (let seq = 1; seq <= RECORDS; seq++) {
      // Now and then the clock is set back.
      const time = T0 + seq * 1000 - (seq % 1000 === 0 ? 900_000 : 0);
      const type = seq % 4 === 0 ? 'certificate.issued' : 'auth.otp';
      const more = {
        subject: `CN=Client-${seq % 1200}`,
        ca: seq % 2 === 0 ? 'lab' : undefined,
        serial: `0${seq % 9}`,
        request_id: `r${seq >> 2}`,
      };
      const line = {
        seq,
        time: new Date(time).toISOString(),
        type,
        outcome: 'success',
        ...more,
        prev_hash: '',
        hash: '',
      };
      audit.run(seq, time, type, JSON.stringify(line));
    }
  })();
}

beforeAll(() => {
  path = folder.file('est.db');
  db = openWritable(path);
  fill();
});
afterAll(() => {
  db.close();
  folder.remove();
});

/** All pages of a list, and that none is fuller than it may be. */
function everything<T>(list: (page: { limit: number; cursor: string | undefined }) => Page<T>): T[] {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = list({ limit: 250, cursor });
    expect(page.items.length).toBeLessThanOrEqual(250);
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}

const CERTIFICATE_FILTERS: readonly Partial<CertificateFilter>[] = [
  {},
  { ca: 'lab' },
  { requester: 'CN=ra' },
  { requester: 'Device-7' },
  { device: 'Device-7' },
  { device_key: 'key-Device-14' },
  { status: 'valid' },
  { status: 'expired' },
  { status: 'revoked' },
  { expires_before: T0 + 20 * DAY },
  { issued_after: T0 + 300 * DAY },
  { subject: 'device-77' },
  { subject: 'größe' },
  { subject: '7,' },
  { subject: 'evice-123,o=GRÖ' },
  { san: 'dns:device-77' },
  { san: 'urn:x:1' },
  { san: 'x:' },
  { san: '",' },
  { subject: 'device-1', san: 'urn:x:10' },
  { subject: 'nobody at all' },
  { subject: 'device-7', status: 'expired', ca: 'devices' },
  { ca: 'devices', status: 'valid', expires_before: T0 + 700 * DAY, issued_after: T0 + 300 * DAY, requester: 'CN=ra' },
  { ca: 'lab', status: 'revoked', requester: 'CN=ra', device: 'Device-0' },
];

function isFound(row: CertificateRow, n: number, filter: Partial<CertificateFilter>): boolean {
  const { ca, subject, san, requester, device, device_key, status, issued_after, expires_before } = filter;
  const state = row.revoked_at !== null ? 'revoked' : row.not_after < NOW ? 'expired' : 'valid';
  const has = (text: string, part: string | undefined) => text.toLowerCase().includes((part ?? '').toLowerCase());
  return (
    (ca === undefined || row.ca === ca) &&
    (requester === undefined || row.requester === requester) &&
    (device === undefined || row.device === device) &&
    (device_key === undefined || row.device_key === device_key) &&
    (status === undefined || state === status) &&
    (issued_after === undefined || issuedAt(n) > issued_after) &&
    (expires_before === undefined || row.not_after < expires_before) &&
    has(row.subject, subject) &&
    row.sans.some((name) => has(name, san))
  );
}

const AUDIT_FILTERS: readonly Partial<AuditFilter>[] = [
  {},
  { type: 'certificate.issued' },
  { ca: 'lab' },
  { serial: '07' },
  { request_id: 'r77' },
  { subject: 'client-77' },
  { subject: 'CLIENT' },
  { subject: '11' },
  { subject: 'client-1199', type: 'auth.otp' },
  { subject: 'nobody' },
  { since: T0 + 4_000_000 },
  { until: T0 + 200_000 },
  { since: T0 + 3_000_000, until: T0 + 3_100_000, ca: 'lab', type: 'certificate.issued' },
  { since: T0 + 4_000_000, subject: 'client-9' },
];

/** Looks at every record. */
function found(filter: Partial<AuditFilter>): number[] {
  const { type, ca, serial, request_id, subject, since, until } = filter;
  const all = db.prepare<[], { line: string; time: number }>('SELECT line, time FROM audit ORDER BY seq').all();
  return all.flatMap(({ line, time }) => {
    const record = JSON.parse(line) as Record<string, string> & { seq: number };
    const same = (name: string, value: string | undefined) => value === undefined || record[name] === value;
    const fits =
      same('type', type) && same('ca', ca) && same('serial', serial) && same('request_id', request_id) &&
      (record['subject'] ?? '').toLowerCase().includes((subject ?? '').toLowerCase()) &&
      time >= (since ?? 0) && time <= (until ?? NOW); // prettier-ignore
    return fits ? [record.seq] : [];
  });
}

function allFindTheSame(): void {
  const certificates = atOnce(certificateList(db, LIMITS));
  const audit = atOnce(auditReads(db, LIMITS));
  for (const order of ['asc', 'desc'] as const) {
    const inOrder = <T>(all: T[]): T[] => (order === 'asc' ? all : all.toReversed());
    for (const filter of CERTIFICATE_FILTERS) {
      const serials = everything((page) => certificates.listCertificates({ ...filter, ...page, order }, NOW));
      const expected = rows.filter((row, n) => isFound(row, n, filter)).map(({ serial }) => serial);
      expect(
        serials.map(({ serial }) => serial),
        `${order} ${JSON.stringify(filter)}`,
      ).toEqual(inOrder(expected));
    }
    for (const filter of AUDIT_FILTERS) {
      const seqs = everything((page) => audit.listAudit({ ...filter, ...page, order })).map(({ seq }) => seq);
      expect(seqs, `${order} ${JSON.stringify(filter)}`).toEqual(inOrder(found(filter)));
    }
  }
}

describe('lists of any length', () => {
  test('nothing is indexed behind yet: all filters find what is there, in both orders', () => {
    expect(atOnce(searchIndexReads(db)).isSearchBehind()).toBe(true);
    allFindTheSame();
  });

  test('a part is indexed, then all, and the filters find the same', () => {
    const index = searchIndexWrites(db);
    for (let n = 0; n < 4; n++) expect(index()).toBe(true);
    allFindTheSame();
    while (index());
    expect(atOnce(searchIndexReads(db)).isSearchBehind()).toBe(false);
    allFindTheSame();
    // The newest goes, and its row number with it.
    const last = rows.pop();
    db.prepare('DELETE FROM certificate WHERE serial = ?').run(last?.serial);
    const next = certificateRow(reservation({ subject: 'CN=Device-77-late' }), { sans: ['DNS:late.example'] });
    runAtOnce(insertCertificate(new SqlitePort(db))(next, issuedAt(CERTIFICATES - 1)));
    rows.push(next);
    allFindTheSame();
    while (index());
    allFindTheSame();
  });

  test('a page that has cost enough is given as it is, and goes on', () => {
    const certificates = atOnce(certificateList(db, { step: 100, maxWait: 0 }));
    const filter = { requester: 'CN=ra', expires_before: 0, limit: 10 };
    expect(certificates.listCertificates(filter, NOW).items).toEqual([]);
    const scattered = { requester: 'CN=ra', san: '7', limit: 1000 };
    const first = certificates.listCertificates(scattered, NOW);
    expect(first.items.length).toBeLessThan(100);
    expect(first.next_cursor).not.toBeNull();
  });

  test('no query goes through a whole table or index, whatever is asked for', () => {
    const queries: string[] = [];
    const watched = new Database(path, { readonly: true, verbose: (sql) => queries.push(String(sql)) });
    addFunctions(watched);
    const certificates = atOnce(certificateList(watched));
    const audit = atOnce(auditReads(watched));
    const reads = atOnce(commonReads(new SqlitePort(watched)));
    for (const order of ['asc', 'desc'] as const) {
      const page = { limit: 10, order };
      for (const filter of CERTIFICATE_FILTERS) certificates.listCertificates({ ...filter, ...page }, NOW);
      certificates.listCertificates({ serial: '00', ...page }, NOW);
      for (const filter of AUDIT_FILTERS) audit.listAudit({ ...filter, ...page });
      for (const client_id of [undefined, 'a'])
        for (const status of [undefined, 'active', 'consumed', 'expired', 'revoked'] as const)
          reads.listOtps({ client_id, status, ...page }, NOW);
      for (const status of [undefined, 'pending'] as const)
        for (const ca of [undefined, 'lab'])
          for (const device of [undefined, 'd'])
            for (const requester of [undefined, 'r']) reads.listRequests({ status, ca, device, requester, ...page });
      for (const id of [undefined, 'a'])
        for (const ca of [undefined, 'lab'])
          for (const enabled of [undefined, true, false]) reads.listDevices({ id, ca, enabled, ...page });
      reads.listLockouts(page, NOW);
      for (const filter of [{}, { subject: 'a' }, { labels: ['lab'] }, { device: 'd' }, { seen_before: NOW }])
        for (const state of [undefined, 'failing'] as const) {
          reads.listHolders({ ...filter, state, ...page });
          reads.listHolders({ ...filter, state, ca: 'lab', expires_before: NOW, ...page });
        }
    }
    reads.countExpiringHolders(NOW);
    reads.countEnteredHolders(NOW);
    reads.listEnteredHolders('lab', 'failing');
    reads.usesOfDevices(['a', 'b'], ['lab']);
    const lists = new Set(
      queries.filter((sql) => / FROM (certificate|audit|otp|request|device|lockout|holder)/.test(sql)),
    );
    expect(lists.size).toBeGreaterThan(100);
    for (const sql of lists) {
      const steps = db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
      for (const { detail } of steps) {
        // A bounded number of entries, the trigrams' own table with its MATCH, and lists that are arguments.
        const bounded =
          /^SCAN (\(?subquery|latest|json_each|names VIRTUAL TABLE INDEX \d+:M|certificate_names VIRTUAL TABLE INDEX \d+:M|audit_subject_names VIRTUAL TABLE INDEX \d+:M)/;
        if (/ AS n FROM \(SELECT 1 FROM .* LIMIT \d+\)$/s.test(sql) && /^SCAN/.test(detail)) continue;
        if (detail.startsWith('SCAN')) expect(detail, sql).toMatch(bounded);
      }
    }
    watched.close();
  });

  test('the fleet is derived from the newest renewals of a certificate, in the order of an index', () => {
    const queries: string[] = [];
    const watched = new Database(path, { verbose: (sql) => queries.push(String(sql)) });
    addFunctions(watched);
    const port = new SqlitePort(watched);
    const [, former, row] = rows;
    if (row === undefined || former === undefined) throw new Error('no rows');
    const { ca, serial, fingerprint_sha256 } = row;
    const certificate = { ca, serial, issued: { with: { serial: former.serial }, renews: true } };
    const use = { serial, fingerprints: [fingerprint_sha256], first_used_at: NOW, last_used_at: NOW };
    const rules = { forget: 0, expected: () => true, requiresDevices: () => false, authorities: new Set<string>() };
    const window = () => ({ start: NOW, end: NOW });
    const connection = { connected_at: NOW, tls_version: 'TLSv1.3' as const, names_label: true, chains: [] };
    watched.transaction(() => {
      runAtOnce(
        holderWrites(port).applyFleetChanges.run(
          { certificates: [certificate] },
          { ...rules, window, reports: true },
          NOW,
        ),
      );
      runAtOnce(useWrites(port).recordUses.run({ uses: [{ ...use, ...connection }], issued: [], renewalInfo: [] }));
    })();
    const renewals = queries.filter((sql) => sql.includes('AS requested'));
    expect(renewals.length).toBeGreaterThanOrEqual(4);
    for (const sql of renewals) {
      expect(sql, 'prepared once').toMatch(/renewed_serial = (?:\+|\(SELECT )/);
      const steps = db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
      const read = steps.map(({ detail }) => detail).filter((detail) => / requested\b|ORDER BY/.test(detail));
      const search = 'SEARCH requested USING INDEX certificate_use_by_renewal (renewed_serial=? AND renewed_ca=?)';
      expect(new Set(read), sql).toEqual(new Set([search]));
    }
    watched.close();
  });
});
