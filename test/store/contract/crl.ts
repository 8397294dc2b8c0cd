import { describe, expect, test } from 'vitest';
import { encodeCrlEntry } from '../../../src/pki/x509/crl.ts';
import { event, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

const list = (number: number, text = `list ${number}`) => ({
  ca: 'devices',
  number,
  this_update: T0,
  next_update: T0 + 3_600_000,
  der: Buffer.from(text),
});

export function crlStoreContract(newDatabase: NewDatabase): void {
  describe('CrlStore', () => {
    test('RFC 5280 §5.2.3: CRL numbers rise, for each CA, over restarts, and also over lists that never came to be', async () => {
      const database = newDatabase();
      const store = await database.open();
      expect((await store.crlHead('devices')).number).toBeUndefined();
      expect([await store.takeCrlNumber('devices'), await store.takeCrlNumber('devices')]).toEqual([1, 2]);
      expect(await store.takeCrlNumber('lab')).toBe(1);
      expect((await store.crlHead('devices')).number, 'given out, but no list yet').toBeUndefined();
      await store.close();
      expect(await (await database.open()).takeCrlNumber('devices')).toBe(3);
    });

    test('the latest list is kept with its audit event; one with a lower number changes nothing', async () => {
      const store = await newDatabase().open();
      for (let n = 0; n < 3; n++) await store.takeCrlNumber('devices');
      expect(await store.saveCrl(list(2), 0, [event('crl.issued')])).toBe(true);
      expect(await store.saveCrl(list(1), 0, [event('crl.issued')])).toBe(false);
      expect(await store.saveCrl(list(2, 'again'), 0, [event('crl.issued')])).toBe(false);
      expect((await store.crlHead('devices')).number).toBe(2);
      expect(await store.getCrl('devices')).toEqual(list(2));
      expect(await store.getCrl('lab')).toBeUndefined();
      expect((await auditTypes(store)).filter((type) => type === 'crl.issued')).toHaveLength(1);
    });

    test('revocations and releases make the CRL of their CA incomplete until one that contains them is saved', async () => {
      const store = await newDatabase().open();
      const { serial } = await issue(store, { ca: 'devices' });
      const head = () => store.crlHead('devices');
      expect(await head()).toEqual({ number: undefined, changes: 0, changed_at: null });
      const hold = { ca: 'devices', serial, revoked_at: T0 + 5, reason: 'certificateHold', invalidity_date: null };
      await store.revokeCertificate(hold, []);
      await store.releaseCertificate(hold, T0 + 9, []);
      await store.revokeCertificate({ ...hold, ca: 'lab' }, []);
      expect(await head()).toEqual({ number: undefined, changes: 2, changed_at: T0 + 5 });
      for (let n = 0; n < 4; n++) await store.takeCrlNumber('devices');
      await store.saveCrl(list(2), 1, []);
      expect(await head(), 'one came while it was signed').toEqual({ number: 2, changes: 2, changed_at: T0 });
      await store.saveCrl(list(1), 2, []);
      expect(await head(), 'not saved').toEqual({ number: 2, changes: 2, changed_at: T0 });
      await store.saveCrl(list(3), 2, []);
      expect(await head()).toEqual({ number: 3, changes: 2, changed_at: null });
      expect(await store.crlHead('lab')).toMatchObject({ changes: 0 });
    });

    test('gives entries for revoked certificates in pages: of one CA, up to a time, without what had expired', async () => {
      const store = await newDatabase().open();
      const revoke = async (more: Parameters<typeof issue>[1], revoked_at: number, ca = 'devices'): Promise<string> => {
        const { serial } = await issue(store, { ca, ...more });
        await store.revokeCertificate({ ca, serial, revoked_at, reason: 'superseded', invalidity_date: null }, []);
        return serial;
      };
      const expected = [await revoke({}, T0), await revoke({}, T0 + 1), await revoke({}, T0 + 2)];
      await revoke({}, T0 + 3);
      await revoke({}, T0, 'lab');
      await revoke({ not_before: T0 - 9000, not_after: T0 - 1 }, T0 - 5000);
      await issue(store, { ca: 'devices' });
      const filter = { ca: 'devices', revoked_until: T0 + 2, valid_at: T0, limit: 2 };
      const first = await store.revokedEntries({ ...filter, after: 0 });
      const second = await store.revokedEntries({ ...filter, after: first.last });
      expect([first.count, second.count]).toEqual([2, 1]);
      const entries = expected.map((serialNumber, n) =>
        encodeCrlEntry({
          serialNumber,
          revocationDate: new Date(T0 + n),
          reason: 'superseded',
          invalidityDate: undefined,
        }),
      );
      expect([first.der, second.der]).toEqual([Buffer.concat(entries.slice(0, 2)), entries[2]]);
      expect(await store.revokedEntries({ ...filter, after: second.last })).toMatchObject({ count: 0 });
    });
  });
}
