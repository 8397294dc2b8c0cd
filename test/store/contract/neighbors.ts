/** One call's values never decide about another call of the same batch. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { event, otpRow, reservation, T0 } from '../rows.ts';
import type { NewDatabase } from './support.ts';

const POLICY = { max_failures: 5, failure_window: 300, lockout_duration: 900 };

/** Texts and numbers that a layer dislikes: an encoding, an index, a type, JSON. */
const text = fc.constantFrom('\0', 'a\0b', '\ud800', '設備', '\u{10ffff}', 'x'.repeat(9000), '\\u0000', "'; --", '');
const number = fc.constantFrom(0.5, -1, 1e18, 1e300, Number.MAX_SAFE_INTEGER + 2, Number.NaN, Infinity);

const bad: fc.Arbitrary<(store: Store) => Promise<unknown>> = fc.oneof(
  text.map((subject) => (store: Store) => store.audit([event('auth.otp', { subject })])),
  text.map((detail) => (store: Store) => store.audit([event('auth.otp', { detail, ca: detail })])),
  text.map((client_id) => (store: Store) => store.insertOtp(otpRow({ client_id }), [])),
  number.map((expires_at) => (store: Store) => store.insertOtp(otpRow({ expires_at }), [])),
  text.map(
    (subject) => (store: Store) => store.reserve(reservation({ subject }), [event('request.received', { subject })]),
  ),
  text.map((name) => (store: Store) => store.recordFailure([`username:${name}`], POLICY, T0, [event('auth.ldap')])),
  number.map((at) => (store: Store) => store.recordFailure(['address:192.0.2.1'], POLICY, at, [event('auth.ldap')])),
);

export function neighborContract(newDatabase: NewDatabase): void {
  describe('calls of one batch', () => {
    test('property: none is answered differently because of what another contains', async () => {
      const store = await newDatabase().open();
      await fc.assert(
        fc.asyncProperty(fc.array(fc.option(bad), { minLength: 2, maxLength: 8 }), async (calls) => {
          const rows = calls.map(() => otpRow());
          const outcomes = await Promise.allSettled(
            calls.map(async (call, n) => {
              const row = rows[n];
              if (call !== null || row === undefined) await call?.(store);
              else await store.insertOtp(row, [event('otp.created', { subject: row.client_id })]);
            }),
          );
          for (const [n, call] of calls.entries())
            if (call === null) {
              expect(outcomes[n]).toMatchObject({ status: 'fulfilled' });
              expect(await store.getOtp(rows[n]?.id ?? '')).toBeDefined();
            }
        }),
        { numRuns: 60 },
      );
    });
  });
}
