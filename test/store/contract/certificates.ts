import { describe, expect, test } from 'vitest';
import type { CertificateFilter } from '../../../src/store/certificate-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, event, reservation, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

const DAY = 86_400_000;
const NOW = T0 + 100 * DAY;

async function subjects(store: Store, filter: Partial<CertificateFilter>): Promise<string[]> {
  const page = await store.listCertificates({ limit: 100, ...filter }, NOW);
  return page.items.map((row) => row.subject);
}

export function certificateStoreContract(newDatabase: NewDatabase): void {
  describe('CertificateStore', () => {
    test('a certificate comes back as it was recorded, by serial, by CA and serial', async () => {
      const store = await newDatabase().open();
      const row = await issue(store, { ca: 'devices', serial: '0a0b' });
      const other = await issue(store, { ca: 'lab', serial: '0a0b' });
      expect(await store.getCertificates('0a0b')).toEqual([row, other]);
      expect(await store.getCertificates('0a0b', 'lab')).toEqual([other]);
      expect(await store.getCertificates('0a0b', 'no-such-ca')).toEqual([]);
      expect(Buffer.isBuffer((await store.getCertificates('0a0b'))[0]?.der)).toBe(true);
    });

    test('an existing certificate is imported once, unless a reservation has its serial number', async () => {
      const store = await newDatabase().open();
      const row = certificateRow(reservation({ ca: 'devices', serial: '0a0b' }));
      const load = () => store.importCertificate(row, [event('certificate.imported')]);
      await store.reserve(reservation({ ca: 'devices', serial: '0a0b', request_id: 'r' }), []);
      expect(await load()).toBe('known');
      await store.releaseReservation('r', []);
      expect([await load(), await load()]).toEqual(['imported', 'known']);
      expect(await store.getCertificates('0a0b')).toEqual([row]);
      expect(await auditTypes(store)).toEqual(['certificate.imported']);
    });

    test('a count has no rows, honors every filter, and ends at its limit', async () => {
      const store = await newDatabase().open();
      for (const n of [1, 2, 3, 4, 5]) await issue(store, { subject: `CN=${n % 2 === 0 ? 'oven' : 'press'}-${n}` });
      const counted = (filter: Partial<CertificateFilter>) =>
        store.listCertificates({ limit: 100, counts: true, ...filter }, NOW);
      for (const [filter, total] of [
        [{}, { count: 5, exact: true }],
        [{ limit: 5 }, { count: 5, exact: true }],
        [{ limit: 4 }, { count: 4, exact: false }],
        [
          { subject: 'PRESS', order: 'desc' },
          { count: 3, exact: true },
        ],
        [
          { subject: 'press', limit: 2 },
          { count: 2, exact: false },
        ],
        [{ status: 'revoked' }, { count: 0, exact: true }],
        [{ serial: '0a' }, { count: 0, exact: true }],
        [{ labels: ['none'] }, { count: 0, exact: true }],
      ] as const)
        expect(await counted(filter)).toEqual({ items: [], next_cursor: null, total });
    });

    test('a certificate comes back with the label that it was asked for at, and is listed by it and by its CA', async () => {
      const store = await newDatabase().open();
      const own = await issue(store, { ca: 'devices', subject: 'CN=own' });
      expect(await store.hasOtherLabels('devices')).toBe(false);
      const guest = await issue(store, { ca: 'devices', label: 'guests', subject: 'CN=guest' });
      await issue(store, { ca: 'lab', subject: 'CN=lab' });
      expect([await store.hasOtherLabels('devices'), await store.hasOtherLabels('lab')]).toEqual([true, false]);
      expect(await store.getCertificates(guest.serial, 'devices')).toEqual([guest]);
      expect(await store.getCertificates(guest.serial, 'guests')).toEqual([]);
      expect([own.label, guest.label]).toEqual([null, 'guests']);
      expect(await subjects(store, { ca: 'devices' })).toEqual(['CN=own', 'CN=guest']);
      expect(await subjects(store, { label: 'guests' })).toEqual(['CN=guest']);
      expect(await subjects(store, { ca: 'lab', label: 'guests' })).toEqual([]);
    });

    test('a hold ends or becomes final, once; every other reason is final', async () => {
      const store = await newDatabase().open();
      const { ca, serial } = await issue(store, { ca: 'devices' });
      const revoke = (reason: string, revoked_at: number) =>
        store.revokeCertificate({ ca, serial, revoked_at, reason, invalidity_date: null }, [event('certificate.held')]);
      const release = () => store.releaseCertificate({ ca, serial }, NOW, [event('certificate.released')]);
      const row = async () => (await store.getCertificates(serial))[0];
      expect(await release()).toBe('not-held');
      expect(await revoke('certificateHold', T0 + 1)).toBe('revoked');
      expect(await revoke('certificateHold', T0 + 2)).toBe('already-revoked');
      expect(await store.findRevoked(serial)).toHaveLength(1);
      expect([await release(), await release()]).toEqual(['released', 'not-held']);
      expect(await row()).toMatchObject({ revoked_at: null, reason: null });
      expect(await store.findRevoked(serial)).toEqual([]);
      await revoke('certificateHold', T0 + 3);
      expect(await revoke('keyCompromise', T0 + 4)).toBe('revoked');
      expect(await row(), 'revoked since the hold').toMatchObject({ revoked_at: T0 + 3, reason: 'keyCompromise' });
      expect([await revoke('superseded', NOW), await release()]).toEqual(['already-revoked', 'not-held']);
      expect(await store.releaseCertificate({ ca: 'lab', serial }, NOW, [])).toBe('unknown');
      expect((await auditTypes(store)).filter((type) => type.startsWith('certificate.'))).toEqual([
        ...['certificate.held', 'certificate.released', 'certificate.held', 'certificate.held'],
      ]);
    });

    test('GET /admin/certificates: each filter, alone and together', async () => {
      const store = await newDatabase().open();
      await issue(store, { ca: 'devices', serial: '01', subject: 'CN=Müller-1,O=Example', not_after: T0 + 10 * DAY });
      await issue(store, { ca: 'devices', serial: '02', subject: 'CN=device_%', not_after: T0 + 200 * DAY });
      await issue(store, { ca: 'lab', serial: '02', subject: 'CN=MÜLLER-2', not_after: T0 + 300 * DAY });
      await store.revokeCertificate(
        { ca: 'lab', serial: '02', revoked_at: NOW, reason: 'keyCompromise', invalidity_date: null },
        [],
      );
      expect(await subjects(store, {})).toEqual(['CN=Müller-1,O=Example', 'CN=device_%', 'CN=MÜLLER-2']);
      expect(await subjects(store, { ca: 'devices' })).toEqual(['CN=Müller-1,O=Example', 'CN=device_%']);
      expect(await subjects(store, { subject: 'müller' })).toEqual(['CN=Müller-1,O=Example', 'CN=MÜLLER-2']);
      expect(await subjects(store, { subject: '_%' })).toEqual(['CN=device_%']);
      expect(await subjects(store, { subject: "'; DROP TABLE certificate; --" })).toEqual([]);
      expect(await subjects(store, { serial: '02' })).toEqual(['CN=device_%', 'CN=MÜLLER-2']);
      expect(await subjects(store, { status: 'expired' })).toEqual(['CN=Müller-1,O=Example']);
      expect(await subjects(store, { status: 'valid' })).toEqual(['CN=device_%']);
      expect(await subjects(store, { status: 'revoked' })).toEqual(['CN=MÜLLER-2']);
      expect(await subjects(store, { expires_before: T0 + 200 * DAY })).toEqual(['CN=Müller-1,O=Example']);
      expect(await subjects(store, { expires_before: T0 + 300 * DAY + 1, serial: '02', ca: 'lab' })).toEqual([
        'CN=MÜLLER-2',
      ]);
    });

    test('the list pages in order of issuance, and a page begun before an insert goes on where it was', async () => {
      const store = await newDatabase().open();
      for (const name of ['a', 'b', 'c', 'd']) await issue(store, { subject: `CN=${name}` });
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.listCertificates({ limit: 2, cursor }, NOW);
        seen.push(...page.items.map((row) => row.subject));
        cursor = page.next_cursor ?? undefined;
        if (seen.length === 2) await issue(store, { subject: 'CN=e' });
      } while (cursor !== undefined);
      expect(seen).toEqual(['CN=a', 'CN=b', 'CN=c', 'CN=d', 'CN=e']);
    });

    test('revoking marks the certificate once; again and unknown ones are told apart and not audited', async () => {
      const store = await newDatabase().open();
      const { ca, serial } = await issue(store);
      const revocation = { ca, serial, revoked_at: NOW, reason: 'keyCompromise', invalidity_date: T0 };
      const events = [event('certificate.revoked')];
      expect(await store.revokeCertificate(revocation, events)).toBe('revoked');
      expect(await store.revokeCertificate({ ...revocation, reason: 'superseded' }, events)).toBe('already-revoked');
      expect(await store.revokeCertificate({ ...revocation, ca: 'lab' }, events)).toBe('unknown');
      expect(await store.getCertificates(serial)).toMatchObject([
        { revoked_at: NOW, reason: 'keyCompromise', invalidity_date: T0 },
      ]);
      expect(await auditTypes(store)).toEqual(['certificate.revoked']);
    });

    test('the revoked ones of a serial number are found, of every CA, as soon as they are', async () => {
      const store = await newDatabase().open();
      const row = await issue(store, { ca: 'devices', serial: '0a0b' });
      await issue(store, { ca: 'lab', serial: '0a0b' });
      await issue(store, { ca: 'devices', serial: '0c0d' });
      expect(await store.findRevoked('0a0b')).toEqual([]);
      const revocation = {
        ca: 'devices',
        serial: '0a0b',
        revoked_at: NOW,
        reason: 'superseded',
        invalidity_date: null,
      };
      await store.revokeCertificate(revocation, []);
      expect(await store.findRevoked('0a0b')).toEqual([{ ca: 'devices', serial: '0a0b', der: row.der }]);
      await store.revokeCertificate({ ...revocation, ca: 'lab' }, []);
      expect(await store.findRevoked('0a0b')).toHaveLength(2);
      expect(await store.findRevoked('0c0d')).toEqual([]);
      expect(await store.findRevoked('ffff')).toEqual([]);
    });

    test('certificates are found by the request that they came from, and by their key', async () => {
      const store = await newDatabase().open();
      const older = await issue(store, { key_identifier: 'abcd' });
      const newer = await issue(store, { key_identifier: 'abcd' });
      await issue(store, { key_identifier: 'ef01' });
      expect(await store.findCertificateByRequest(older.request_id)).toEqual(older);
      expect(await store.findCertificateByRequest('none')).toBeUndefined();
      expect(await store.findCertificatesByKey('abcd')).toEqual([newer, older]);
      expect(await store.findCertificatesByKey('00')).toEqual([]);
    });
  });
}
