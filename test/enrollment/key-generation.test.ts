/** Which key the server generates, and how many at a time. */
import { afterAll, expect, test } from 'vitest';
import { Ca } from '../../src/ca/router.ts';
import type { ProfileConfig } from '../../src/config/schema.ts';
import { chooseKeyType, KeyGenerator } from '../../src/enrollment/key-generation.ts';
import { EstuaryError } from '../../src/errors.ts';
import { fileCa } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const { config, driver } = await fileCa(folder, 'devices', true);

type KeyTypes = ProfileConfig['key_types'];

test.each<[string, KeyTypes, string, string]>([
  ['the requested one', ['ec:P-256', 'ec:P-384'], 'ec:P-384', 'ec:P-384'],
  ['the first of the profile where the requested one is not allowed', ['ec:P-256'], 'ec:P-384', 'ec:P-256'],
  ['none that the server cannot generate', ['rsa-pss:2048', 'ec:P-256'], 'rsa-pss:2048', 'ec:P-256'],
  ['400 where it can generate none', ['rsa-pss:2048'], 'ec:P-256', 'KEY_TYPE_NOT_GENERATED'],
])('%s', (_, key_types, requested, expected) => {
  const chosen = () => {
    try {
      return chooseKeyType(new Ca({ ...config, profile: { ...config.profile, key_types } }, driver), requested);
    } catch (error) {
      return error instanceof EstuaryError ? error.code : error;
    }
  };
  expect(chosen()).toBe(expected);
});

test('one RSA key at a time, and two of other types, which wait for no RSA key', async () => {
  const keys = new KeyGenerator();
  const rsa = await keys.generate('rsa:2048');
  const others = [await keys.generate('ec:P-256'), await keys.generate('ec:P-256')];
  const waiting = { rsa: true, other: true };
  const next = keys.generate('rsa:2048').finally(() => (waiting.rsa = false));
  const third = keys.generate('ec:P-256').finally(() => (waiting.other = false));
  others[0]?.dispose();
  (await third).dispose();
  expect(waiting).toEqual({ rsa: true, other: false });
  rsa.dispose();
  (await next).dispose();
  others[1]?.dispose();
});
