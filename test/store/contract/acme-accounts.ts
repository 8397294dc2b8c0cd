import { describe, expect, test } from 'vitest';
import type { NewDatabase } from './support.ts';

export function acmeAccountStoreContract(newDatabase: NewDatabase): void {
  describe('AcmeAccountStore', () => {
    test('the URL of an account is kept per directory and key, across restarts; the latest counts', async () => {
      const account = { directory: 'https://acme.example/directory', thumbprint: 'key-1' };
      const database = newDatabase();
      const store = await database.open();
      expect(await store.getAcmeAccount(account)).toBeUndefined();
      await store.putAcmeAccount(account, 'https://acme.example/account/1');
      await store.putAcmeAccount(account, 'https://acme.example/account/2');
      await store.close();
      const again = await database.open();
      expect(await again.getAcmeAccount(account)).toBe('https://acme.example/account/2');
      for (const other of [{ directory: 'https://other.example/directory' }, { thumbprint: 'key-2' }])
        expect(await again.getAcmeAccount({ ...account, ...other })).toBeUndefined();
    });
  });
}
