/** Tokens are found by a keyed hash with the server's own key. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { lookupKeyFile, makeLookupKey } from '../../../src/store/lookup-key-file.ts';
import { openWritable } from '../../../src/store/sqlite/database.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { findKeyTrouble } from '../../../src/store/sqlite/token-lookups.ts';
import type { OtpRow } from '../../../src/store/otp-store.ts';
import { enrolledInProcesses, otpRow, requestRow, T0, temporaryPaths, type Paths } from '../support.ts';

const now = (): number => T0 + 1000;
const keyOf = ({ path }: Paths): Buffer => readFileSync(lookupKeyFile(path));

describe('the key', () => {
  test('is made at the first start, 32 bytes for the owner only, and kept', async () => {
    const paths = temporaryPaths();
    await (await openStore(paths)).close();
    const key = keyOf(paths);
    expect([key.length, statSync(lookupKeyFile(paths.path)).mode & 0o777]).toEqual([32, 0o600]);
    await (await openStore(paths)).close();
    expect(keyOf(paths)).toEqual(key);
    expect(readdirSync(paths.folder).filter((name) => name.startsWith('otp-lookup.key'))).toEqual(['otp-lookup.key']);
  });

  test('is one, also where several processes make it at once', async () => {
    const paths = temporaryPaths();
    // A process with another key does not start.
    expect(await enrolledInProcesses(paths, 4)).toEqual([0, 0, 0, 0]);
    const key = keyOf(paths);
    expect(makeLookupKey(lookupKeyFile(paths.path))).toEqual(key);
    expect(findKeyTrouble(paths.path, undefined, T0)).toBeUndefined();
  });

  test('that is configured is taken, and none is made', async () => {
    const paths = temporaryPaths();
    const lookupKey = { configured: Buffer.alloc(32, 5), required: true };
    await (await openStore({ ...paths, lookupKey })).close();
    expect(existsSync(lookupKeyFile(paths.path))).toBe(false);
    expect(findKeyTrouble(paths.path, Buffer.alloc(32, 5), T0)).toBeUndefined();
  });

  test.each<[string, (file: string) => void, string, string]>([
    ['is lost', (file) => rmSync(file), 'LOOKUP_KEY_MISSING', 'missing'],
    ['is another one', (file) => writeFileSync(file, Buffer.alloc(32, 1)), 'LOOKUP_KEY_OTHER', 'other'],
  ])('that %s while a token lives: no start, nothing changed; one-time passwords off: a start', async (...row) => {
    const [, spoil, code, trouble] = row;
    const paths = temporaryPaths();
    const store = await openStore({ ...paths, now });
    const token = otpRow();
    await store.insertOtp(token, []);
    await store.close();
    const key = keyOf(paths);
    const file = lookupKeyFile(paths.path);
    spoil(file);
    const spoilt = existsSync(file) ? keyOf(paths) : undefined;

    await expect(openStore({ ...paths, now })).rejects.toMatchObject({ code });
    expect(findKeyTrouble(paths.path, undefined, now())).toBe(trouble);
    const without = await openStore({ ...paths, now, lookupKey: { configured: undefined, required: false } });
    expect((await without.getOtp(token.id))?.lookup).toBe(token.lookup);
    await without.close();
    expect(existsSync(file) ? keyOf(paths) : undefined).toEqual(spoilt);

    writeFileSync(file, key);
    await (await openStore({ ...paths, now })).close();
  });

  test.each<[string, Partial<OtpRow>, boolean]>([
    ['expired', { expires_at: T0 + 1 }, true],
    ['revoked', { revoked_at: T0 }, true],
    ['consumed', { uses: 1 }, true],
    ['consumed by a request that waits', { uses: 1, id: 'waiting' }, false],
  ])('that is lost where every token is %s: replaced, unless one is in use', async (_, more, replaced) => {
    const paths = temporaryPaths();
    const store = await openStore({ ...paths, now });
    const token = otpRow(more);
    await store.insertOtp({ ...token, uses: 0 }, []);
    if (token.id === 'waiting') await store.queueRequest(requestRow({ otp_id: token.id }), null, []);
    await store.close();
    if (token.uses > 0) {
      const db = openWritable(paths.path);
      db.prepare('UPDATE otp SET uses = max_uses').run();
      db.close();
    }
    const key = keyOf(paths);
    rmSync(lookupKeyFile(paths.path));
    const again = openStore({ ...paths, now });
    if (!replaced) return expect(again).rejects.toMatchObject({ code: 'LOOKUP_KEY_MISSING' });
    await (await again).close();
    expect(keyOf(paths)).not.toEqual(key);
    expect(findKeyTrouble(paths.path, undefined, now())).toBeUndefined();
  });

  test('that is cut short is no key: no start', async () => {
    const paths = temporaryPaths();
    writeFileSync(lookupKeyFile(paths.path), Buffer.alloc(31));
    await expect(openStore(paths)).rejects.toMatchObject({ code: 'LOOKUP_KEY_DAMAGED' });
  });
});
