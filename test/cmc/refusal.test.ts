/** Errors as rejections of CMC. */
import { expect, test } from 'vitest';
import { asRefusal } from '../../src/cmc/refusal.ts';
import { unauthorized } from '../../src/errors.ts';

test('only a lockout is already in the audit log when it rejects a message', () => {
  expect(asRefusal(unauthorized('LOCKED_OUT', 'locked out'), 0).audited).toBe(true);
  expect(asRefusal(unauthorized('CLIENT_CERTIFICATE_UNTRUSTED', 'untrusted'), 0).audited).toBe(false);
});
