/** A queued request's certificate answers its polls until it is revoked, expired or presented for renewal. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Identity } from '../../src/auth/identity.ts';
import { Ca } from '../../src/ca/router.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { makeCa } from '../support/certificates.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { mtlsIdentity, otpIdentity, pipeline, received } from './support.ts';

const folder = temporaryFolder();
let store: Store;
let manual: Ca;

beforeAll(async () => {
  store = await openedIn(folder);
  const { config, driver } = await fileCa(folder, 'devices', true);
  manual = new Ca({ ...config, approval: 'manual' }, driver);
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

async function sent(identity: Identity, body: Buffer, now = T0 + 1000) {
  const request = received(manual, body, { requestId: randomUUID() });
  return (await pipeline({ store, identity, now: () => now }).enroll(request)).outcome;
}

/** Sends a request that is new, approves it, and gets its certificate. */
async function issued(identity: Identity, body: Buffer, now?: number) {
  const outcome = await sent(identity, body, now);
  if (outcome.status !== 'pending') throw new Error(outcome.status);
  const approval = { id: outcome.requestId, status: 'approved', reason: null, decided_at: T0 } as const;
  expect(await store.decideRequest(approval, [])).toBe('decided');
  return polled(identity, body, now);
}

async function polled(identity: Identity, body: Buffer, now?: number) {
  const outcome = await sent(identity, body, now);
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  return parseCertificate(outcome.certificate);
}

async function token(): Promise<Identity> {
  const { id } = otpRow();
  await store.insertOtp(otpRow({ id, max_uses: 5, expires_at: Number.MAX_SAFE_INTEGER }), []);
  return otpIdentity({ otp_id: id, requester: `otp:${id}` });
}

test('revoked, or expired: the same request waits for an approval again', async () => {
  const [identity, body] = [await token(), simpleCsr(makeKey(), 'device-1')];
  const first = await issued(identity, body);
  expect(await polled(identity, body)).toEqual(first);
  const revocation = { ca: 'devices', serial: first.serialNumber, revoked_at: T0, invalidity_date: null };
  await store.revokeCertificate({ ...revocation, reason: 'superseded' }, []);
  const second = await issued(identity, body);
  expect(second.serialNumber).not.toBe(first.serialNumber);
  const end = second.notAfter.getTime();
  expect(await polled(identity, body, end)).toEqual(second);
  expect(await sent(identity, body, end + 1)).toMatchObject({ status: 'pending' });
});

test('presented for renewal: the request waits again; the certificate before it still polls', async () => {
  const body = simpleCsr(makeKey(), 'device-1');
  const by = (certificate: Awaited<ReturnType<typeof issued>>) => mtlsIdentity(certificate, manual.certificate);
  const before = by(await issued(await token(), simpleCsr(makeKey(), 'device-1')));
  const certificate = await issued(before, body);
  expect(await polled(before, body)).toEqual(certificate);
  expect(await sent(by(certificate), body)).toMatchObject({ status: 'pending' });
});

test('a certificate of another CA with the same serial number is not that certificate', async () => {
  const body = simpleCsr(makeKey(), 'device-1');
  const maker = parseCertificate((await makeCa('CN=Maker')).der);
  const identity = mtlsIdentity(maker);
  const certificate = await issued(identity, body);
  const { serialNumber } = certificate;
  expect(await polled({ ...identity, certificate: { ...maker, serialNumber } }, body)).toEqual(certificate);
});
