/** The password in a request (RFC 7894 §3.1), and what the method of authentication is asked. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuthContext } from '../../src/auth/plugin.ts';
import type { PasswordCredentials } from '../../src/auth/identity.ts';
import type { Ca } from '../../src/ca/router.ts';
import { Authenticated } from '../../src/enrollment/authenticated.ts';
import type { ReceivedByEst } from '../../src/enrollment/request.ts';
import { badRequest, EstuaryError, unauthorized, unavailable } from '../../src/errors.ts';
import { sequence, utf8String } from '../../src/pki/der/der.ts';
import { attribute, buildCsr, commonName, makeKey, name, otpChallenge } from '../support/csr.ts';
import { fileCa } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { received } from './support.ts';

const folder = temporaryFolder();
let devices: Ca;
beforeAll(async () => {
  devices = await fileCa(folder, 'devices', true);
});
afterAll(() => folder.remove());

const nobody = unauthorized('AUTHENTICATION_REQUIRED', 'nobody');
const never = () => Promise.reject(new Error('not asked'));

/** What the authentication of a request gets to see. */
async function seen(body: ReceivedByEst['body'], operation: ReceivedByEst['operation'] = 'simpleenroll') {
  let challenge: PasswordCredentials | string | undefined;
  let context: Pick<AuthContext, 'certificateOnly' | 'rules'> | undefined;
  await Authenticated.byEst(received(devices, body, { operation }), {
    authenticator: {
      async authenticate({ otpChallenge: read }, found) {
        context = found;
        challenge = await read?.().catch((error: unknown) =>
          error instanceof EstuaryError ? error.code : String(error),
        );
        throw nobody;
      },
    },
    otp: { refuseUnusable: never, refuseRepeat: never },
    failures: { record: never },
    repeats: { usedTokenPermits: never },
    now: () => 0,
  }).catch((error: unknown) => {
    if (error !== nobody) throw error;
  });
  return { challenge, context };
}

const key = makeKey();
const asking = (more: Parameters<typeof buildCsr>[1] = {}): Buffer =>
  buildCsr(key, { subject: commonName('device-1'), attributes: [otpChallenge('secret')], ...more });
const forged = asking({ spki: makeKey().spki });
const organizationFirst = name(
  attribute('2.5.4.10', utf8String('Example')),
  attribute('2.5.4.3', utf8String('device-1')),
);
const found = { username: 'device-1', password: 'secret' };

test.each<[string, ReceivedByEst['body'], ReceivedByEst['operation'], unknown]>([
  ['with the CN as its user', asking(), 'simpleenroll', found],
  ['with no other part of the subject as its user', asking({ subject: organizationFirst }), 'simpleenroll', found],
  ['of a request for a generated key', asking(), 'serverkeygen', found],
  ['without a CN', asking({ subject: sequence() }), 'simpleenroll', { ...found, username: '' }],
  ['none in the request', asking({ attributes: [] }), 'simpleenroll', undefined],
  ['not before the proof of possession', forged, 'simpleenroll', 'CSR_SIGNATURE_INVALID'],
  ['which a generated key needs no proof for', forged, 'serverkeygen', found],
  ['an unreadable request has none', Buffer.from('3000', 'hex'), 'simpleenroll', undefined],
  ['a body that is no base64 has none', badRequest('BODY_NOT_BASE64', 'no'), 'simpleenroll', undefined],
  ['a failure is no bad request', unavailable('STORE_UNAVAILABLE', 'no'), 'simpleenroll', 'STORE_UNAVAILABLE'],
])('a password in the request: %s', async (_, body, operation, expected) => {
  expect((await seen(body, operation)).challenge).toEqual(expected);
});

test('the label’s rules on credentials hold for enrollments; a renewal is the certificate’s own', async () => {
  for (const operation of ['simpleenroll', 'serverkeygen', 'simplereenroll'] as const) {
    const { certificateOnly, rules } = (await seen(asking(), operation)).context ?? {};
    expect([certificateOnly, rules !== undefined]).toEqual(
      operation === 'simplereenroll' ? [true, false] : [false, true],
    );
  }
});
