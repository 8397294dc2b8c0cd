/** `[[cmc.shared_secrets]]`: which secret proves an identity at a label; failures lock out. */
import { expect, test } from 'vitest';
import { SharedSecrets } from '../../src/cmc/shared-secrets.ts';
import { setUpOtp } from '../auth/otp/support.ts';
import { outcome } from './support.ts';

test('a secret counts for its identification at its labels; the audit log says why another does not', async () => {
  const { service, store, clock } = await setUpOtp();
  const secret = Buffer.from('secret');
  const secrets = new SharedSecrets({
    parties: () => ({
      secrets: new Map([
        ['everywhere', { secret, labels: undefined }],
        ['lab only', { secret, labels: ['lab'] }],
      ]),
    }),
    lockout: service.lockout,
    tokenLength: 20,
    retryAfter: 7,
  });
  let address = 0;
  const check = (identification: string | undefined, shown: Buffer, caLabel: string): Promise<string> => {
    const attempt = { address: `192.0.2.${++address}`, caLabel, now: clock.now, bodyPart: 5 };
    return outcome(() => secrets.verify(identification, attempt, ({ secret: known }) => known.equals(shown)));
  };
  for (const caLabel of ['devices', 'lab']) expect(await check('everywhere', secret, caLabel)).toBe('ok');
  expect(await check('lab only', secret, 'lab')).toBe('ok');
  const REFUSED = '401 badIdentity [5]';
  expect(await check('lab only', secret, 'devices')).toBe(REFUSED);
  expect(await check('everywhere', Buffer.from('guess'), 'devices')).toBe(REFUSED);
  expect(await check('nobody', secret, 'devices')).toBe(REFUSED);
  expect(await check(undefined, secret, 'devices')).toBe(REFUSED);
  const { items } = await store.listAudit({ limit: 10, type: 'auth.cmc' });
  expect(items.map(({ detail }) => detail)).toEqual([
    'the secret is for other labels',
    'wrong secret',
    'no such identification',
    'no such identification',
  ]);
  // The stand-in for an unknown secret proves nothing.
  const attempt = { address: '192.0.2.99', caLabel: 'devices', now: clock.now, bodyPart: 5 };
  expect(await outcome(() => secrets.verify('nobody', attempt, () => true))).toBe(REFUSED);
});
