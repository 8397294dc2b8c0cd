/** A one-time password comes in HTTP Basic, or in the request (RFC 7894 §3.1); HTTP Basic counts first. */
import { expect, test } from 'vitest';
import { OtpPlugin } from '../../../src/auth/otp/otp-plugin.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { setUpOtp } from './support.ts';

test('the password in the request authenticates without HTTP Basic, and only then', async () => {
  const { service, newToken, clock } = await setUpOtp();
  const { token } = await newToken();
  const plugin = new OtpPlugin(service);
  const outcome = (password: string | undefined, authorization?: string): Promise<string | undefined> =>
    plugin
      .authenticate(
        {
          authorization,
          address: '192.0.2.1',
          peerCertificate: undefined,
          peerIntermediates: [],
          otpChallenge: () => Promise.resolve(password === undefined ? undefined : { username: '', password }),
        },
        {
          operation: 'simpleenroll',
          caLabel: 'devices',
          certificateOnly: false,
          expiredGraceSeconds: 0,
          now: clock.now,
        },
      )
      .then(
        (identity) => identity?.client_id,
        (error: unknown) => (error instanceof EstuaryError ? error.code : String(error)),
      );
  expect(await outcome(token)).toBe('device-1');
  expect(await outcome(token, 'Bearer x')).toBe('device-1');
  expect(await outcome(undefined)).toBeUndefined();
  expect(await outcome(token, `Basic ${Buffer.from('device:wrong').toString('base64')}`)).toBe('OTP_INVALID');
});
