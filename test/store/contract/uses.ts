import { describe, expect, test } from 'vitest';
import type { CertificateUse } from '../../../src/store/use-store.ts';
import { T0 } from '../rows.ts';
import { issue, type NewDatabase } from './support.ts';

export function useStoreContract(newDatabase: NewDatabase): void {
  describe('UseStore', () => {
    const use = (of: { serial: string; fingerprint_sha256: string }, at: number): CertificateUse => ({
      serial: of.serial,
      fingerprints: ['00', of.fingerprint_sha256],
      ...{ first_used_at: at, last_used_at: at + 5, connected_at: at - 1, chains: [] },
      ...{ tls_version: 'TLSv1.3', names_label: true },
    });
    const seen = { uses: [], issued: [], renewalInfo: [] };

    test('the earliest first use and the latest last one count, in whichever order nodes report them', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      const find = () => store.findUse(row.serial, row.ca);
      expect(await find()).toBeUndefined();
      await store.recordUses({ ...seen, uses: [use(row, T0 + 100)] });
      await store.recordUses({ ...seen, uses: [{ ...use(row, T0 + 50), tls_version: 'TLSv1.2' }] });
      expect(await find()).toMatchObject({ first_used_at: T0 + 50, last_used_at: T0 + 105, tls_version: 'TLSv1.3' });
      await store.recordUses({ ...seen, uses: [{ ...use(row, T0 + 200), tls_version: null, names_label: false }] });
      expect(await find()).toEqual({
        ...{ holder: null, renewed_serial: null, renewed_ca: null, renewal_info_at: null },
        ...{ first_used_at: T0 + 50, last_used_at: T0 + 205, connected_at: T0 + 199 },
        ...{ tls_version: null, names_label: 0 },
      });
    });

    test('a certificate is known by its fingerprint, not by its serial number', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      const forged = { ...row, fingerprint_sha256: '11' };
      await store.recordUses({ ...seen, uses: [use(forged, T0), { ...use(forged, T0), serial: 'ff' }] });
      expect(await store.findUse(row.serial, row.ca)).toBeUndefined();
    });

    test('until it is used, its connection is that of the request that issued it', async () => {
      const store = await newDatabase().open();
      const row = await issue(store);
      const issued = [{ ...row, tls_version: 'TLSv1.2', names_label: false } as const];
      await store.recordUses({ ...seen, issued });
      expect(await store.findUse(row.serial, row.ca)).toMatchObject({ tls_version: 'TLSv1.2', names_label: 0 });
      await store.recordUses({ uses: [use(row, T0)], issued, renewalInfo: [] });
      expect(await store.findUse(row.serial, row.ca)).toMatchObject({ tls_version: 'TLSv1.3', names_label: 1 });
    });

    test('it has the time of the last request for its renewal information, and each chain that it was given', async () => {
      const store = await newDatabase().open();
      const [row, other] = [await issue(store), await issue(store)];
      const { serial, ca } = row;
      const renewalInfo = [T0 + 9, T0 + 5].map((at) => ({ serial, ca, at }));
      await store.recordUses({ ...seen, renewalInfo: [...renewalInfo, { serial: 'ff', ca, at: T0 }] });
      expect(await store.findUse(serial, ca)).toMatchObject({ renewal_info_at: T0 + 9, first_used_at: null });
      const [old, next] = [Buffer.from('3000', 'hex'), Buffer.from('30003000', 'hex')];
      await store.recordUses({ ...seen, uses: [{ ...use(row, T0), chains: [old] }, use(other, T0)] });
      await store.recordUses({ ...seen, uses: [{ ...use(row, T0 + 9), chains: [old, next] }] });
      expect(await store.givenChains(serial, ca)).toEqual([old, next]);
      expect(await store.givenChains(other.serial, ca)).toEqual([]);
    });
  });
}
