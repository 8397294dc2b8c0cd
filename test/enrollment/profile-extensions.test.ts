/** Which requested extensions a certificate gets, through every check. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Ca } from '../../src/ca/router.ts';
import { boolean, NULL, utf8String } from '../../src/pki/der/der.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { Store } from '../../src/store/store.ts';
import { newCaConfig } from '../support/file-ca.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { buildCsr, commonName, extension, extensionRequest, makeKey } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { openFileCa } from '../support/own-ca.ts';
import type { EnrollmentOutcome } from '../../src/enrollment/request.ts';
import { pipeline, otpIdentity, received } from './support.ts';

const ROLE = '1.3.6.1.4.1.55555.1';
const FIXED = '1.3.6.1.4.1.55555.2';
const folder = temporaryFolder();
let store: Store;
let ca: Ca;
const token = otpRow({ max_uses: 100 });

beforeAll(async () => {
  store = await openedIn(folder);
  await store.insertOtp(token, []);
  const config = newCaConfig(folder, 'devices', true);
  const extensions = [
    { oid: ROLE, critical: false, from: 'csr' },
    { oid: FIXED, critical: false, value: '0500' },
  ] as const;
  const changed = { ...config, profile: { ...config.profile, extensions } };
  ca = new Ca(changed, await openFileCa(changed, { now: Date.now }));
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

const key = makeKey();
const csr = (...extensions: Buffer[]): Buffer =>
  buildCsr(key, { subject: commonName('device-1'), attributes: [extensionRequest(...extensions)] });

async function sent(der: Buffer, at: Ca, requestId: string = randomUUID()): Promise<EnrollmentOutcome> {
  const { id } = token;
  const enrollment = pipeline({ store, identity: otpIdentity({ otp_id: id, requester: `otp:${id}` }) });
  return (await enrollment.enroll(received(at, der, { requestId, operation: 'simpleenroll' }))).outcome;
}

async function issued(der: Buffer, at = ca): Promise<Record<string, string>> {
  const outcome = await sent(der, at);
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  const { extensions } = parseCertificate(outcome.certificate);
  return Object.fromEntries(extensions.map(({ oid, value }) => [oid, value.toString('hex')]));
}

test("the copied one is the request's, critical there or not; the fixed one the profile's", async () => {
  const press = utf8String('press');
  for (const critical of [undefined, boolean(true)])
    expect(await issued(csr(extension(ROLE, press, critical), extension(FIXED, press)))).toMatchObject({
      [ROLE]: press.toString('hex'),
      [FIXED]: '0500',
    });
});

test.each([
  ['a copied one that is no DER', 'EXTENSION_MALFORMED', [extension(ROLE, Buffer.from('press'))]],
  ['a copied one that is too long', 'EXTENSION_NOT_ALLOWED', [extension(ROLE, utf8String('x'.repeat(4096)))]],
  ['a critical one that is fixed', 'EXTENSION_NOT_ALLOWED', [extension(FIXED, NULL, boolean(true))]],
])('%s is refused', async (_, code, extensions) => {
  await expect(issued(csr(...extensions))).rejects.toMatchObject({ status: 400, code });
});

test('who approved a request with one value has not approved it with another', async () => {
  const manual = new Ca({ ...ca.config, approval: 'manual' }, ca.driver);
  const [press, admin] = ['press', 'admin'].map((role) => csr(extension(ROLE, utf8String(role))));
  if (press === undefined || admin === undefined) throw new Error('no request');
  const requestId = randomUUID();
  expect(await sent(press, manual, requestId)).toEqual({ status: 'pending', requestId });
  await store.decideRequest({ id: requestId, status: 'approved', reason: null, decided_at: T0 }, []);
  expect(await sent(admin, manual)).toMatchObject({ status: 'pending' });
  expect(await issued(press, manual)).toMatchObject({ [ROLE]: utf8String('press').toString('hex') });
});
