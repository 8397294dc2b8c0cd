/** What an approval stands for, and where secrets and generated keys of a request may go. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Identity, OtpIdentity } from '../../src/auth/identity.ts';
import { prepareAt, SubmissionUnanswered, type CaDriver, type IssuanceResult } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import { KeyGenerator } from '../../src/enrollment/key-generation.ts';
import type { EnrollmentOutcome, EstEnrollment } from '../../src/enrollment/request.ts';
import { EstuaryError, unavailable } from '../../src/errors.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import { StoreLost } from '../../src/store/calls/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { deviceRow, otpRow, T0 } from '../store/rows.ts';
import { buildCsr, commonName, csrAttribute, makeKey, otpChallenge, revocationChallenge } from '../support/csr.ts';
import { otpIdentity, pipeline, received, remoteQueue, storeWithCa } from './support.ts';

const { store, devices } = await storeWithCa();
let submissions = 0;
beforeEach(() => {
  submissions = 0;
});

interface Changes extends Partial<Pick<CaConfig, 'approval' | 'csrattrs'>> {
  readonly keyTypes?: CaConfig['profile']['key_types'];
  readonly driver?: Partial<CaDriver>;
}

function caWith({ keyTypes = ['ec:P-256', 'ec:P-384'], driver = {}, ...more }: Changes = {}): Ca {
  const { config, driver: own } = devices;
  return new Ca(
    { ...config, ...more, profile: { ...config.profile, key_types: keyTypes } },
    {
      chain: () => own.chain(),
      issue: (request) => own.issue(request),
      prepare: (request) => prepareAt(own, request),
      ...driver,
    },
  );
}

/** The driver of a CA elsewhere, which answers a submission like this. */
function elsewhere(submit: () => Promise<IssuanceResult>, issuesAtOnce = true): Partial<CaDriver> {
  return {
    prepare: () =>
      Promise.resolve({
        serial: null,
        issue: () => {
          submissions++;
          return submit();
        },
      }),
    remoteQueue: remoteQueue({ issuesAtOnce: () => Promise.resolve(issuesAtOnce) }),
  };
}

async function token(): Promise<OtpIdentity> {
  const { id } = otpRow();
  await store.insertOtp(otpRow({ id, max_uses: 5 }), []);
  return otpIdentity({ otp_id: id, requester: `otp:${id}` });
}

interface Sending {
  readonly ca?: Ca;
  readonly operation?: EstEnrollment;
  readonly requestId?: string;
  readonly from?: Partial<Store>;
}

async function sent(identity: Identity, body: Buffer, sending: Sending = {}): Promise<EnrollmentOutcome> {
  const { ca = caWith(), operation = 'simpleenroll', requestId = randomUUID(), from = {} } = sending;
  const request = received(ca, body, { requestId, operation });
  return (await pipeline({ store: { ...store, ...from }, identity }).enroll(request)).outcome;
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'granted',
    (error: unknown) => (error instanceof EstuaryError ? error.code : error),
  );
const detailOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => (error instanceof EstuaryError ? (error.detail ?? error.message) : error),
  );

async function queued(identity: Identity, body: Buffer, sending: Sending): Promise<string> {
  const outcome = await sent(identity, body, sending);
  if (outcome.status !== 'pending') throw new Error(outcome.status);
  await store.decideRequest({ id: outcome.requestId, status: 'approved', reason: null, decided_at: T0 }, []);
  return outcome.requestId;
}

const csrWith = (...attributes: Buffer[]): Buffer =>
  buildCsr(makeKey(), { subject: commonName('device-1'), attributes });
const manual = (more: Changes = {}): Ca => caWith({ approval: 'manual', ...more });

test('a revocationChallenge is kept as its hash, made once, with and without an approval', async () => {
  for (const ca of [caWith(), manual()]) {
    const [identity, body] = [await token(), csrWith(revocationChallenge('secret'), otpChallenge('password'))];
    if (ca.config.approval === 'manual') {
      const { csr } = (await store.getRequest(await queued(identity, body, { ca }))) ?? {};
      expect(csr?.includes('secret')).toBe(false);
      expect(csr?.includes('password')).toBe(false);
    }
    const outcome = await sent(identity, body, { ca });
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    const [row] = await store.getCertificates(parseCertificate(outcome.certificate).serialNumber);
    expect(row?.revocation_challenge).toBe('hash of 6 characters');
  }
});

test('a CA that takes the CSR as it was signed gets none with secrets', async () => {
  const ca = caWith({ driver: { takesCsr: true } });
  for (const secret of [otpChallenge('x'), revocationChallenge('x')])
    expect(await codeOf(sent(await token(), csrWith(secret), { ca }))).toBe('CSR_SECRET_NOT_FORWARDED');
  expect(await codeOf(sent(await token(), csrWith(), { ca }))).toBe('granted');
});

describe('an approved request for a generated key', () => {
  const operation = 'serverkeygen';
  const typeOf = (outcome: EnrollmentOutcome) =>
    outcome.status === 'issued' ? parseCertificate(outcome.certificate).publicKey.keyType : outcome.status;

  test('gets the type that was approved, whatever key the poll has', async () => {
    const [identity, ca] = [await token(), manual()];
    await queued(identity, csrWith(), { ca, operation });
    const poll = buildCsr(makeKey('P-384'), { subject: commonName('device-1'), attributes: [] });
    expect(typeOf(await sent(identity, poll, { ca, operation }))).toBe('ec:P-256');
  });

  test('is refused if that type is no longer issued', async () => {
    const identity = await token();
    await queued(identity, csrWith(), { ca: manual(), operation });
    const ca = manual({ keyTypes: ['ec:P-384'] });
    expect(await codeOf(sent(identity, csrWith(), { ca, operation }))).toBe('KEY_TYPE_NOT_GENERATED');
  });

  test('the policy decides on the type of a key that the device generated', async () => {
    const [identity, body] = [await token(), csrWith()];
    await queued(identity, body, { ca: manual() });
    const ca = manual({ keyTypes: ['ec:P-384'] });
    expect(await codeOf(sent(identity, body, { ca }))).toBe('KEY_TYPE_NOT_ALLOWED');
  });

  test('of polls at the same time one generates a key', async () => {
    const [identity, body, ca] = [await token(), csrWith(), manual()];
    await queued(identity, body, { ca, operation });
    const enrollment = pipeline({ store, identity });
    const generated = vi.spyOn(KeyGenerator.prototype, 'generate');
    const poll = () => enrollment.enroll(received(ca, body, { requestId: randomUUID(), operation }));
    const answers = await Promise.all([poll(), poll(), poll()]);
    expect(answers.map(({ outcome }) => outcome.status).sort()).toEqual(['issued', 'pending', 'pending']);
    expect(generated.mock.calls.length).toBe(1);
    generated.mockRestore();
  });
});

test('an encrypted key at a CA that cannot sign its package is refused before it is queued', async () => {
  const key = makeKey();
  const identifier = octetString(subjectKeyIdentifier(key.spki));
  const attributes = [csrAttribute(OID.asymmetricDecryptKeyIdentifier, identifier)];
  const body = buildCsr(key, { subject: commonName('device-1'), attributes });
  const sending = sent(await token(), body, { ca: manual(), operation: 'serverkeygen' });
  expect(await codeOf(sending)).toBe('KEY_FORM_UNSUPPORTED');
});

describe('a generated key at a CA elsewhere', () => {
  const operation = 'serverkeygen';
  const answered = (result: IssuanceResult) => elsewhere(() => Promise.resolve(result));

  test('is not sent to a CA that queues', async () => {
    const driver = elsewhere(() => Promise.reject(new Error('submitted')), false);
    for (const ca of [caWith({ driver }), manual({ driver })])
      expect(await codeOf(sent(await token(), csrWith(), { ca, operation }))).toBe('CA_QUEUED_GENERATED_KEY');
    expect(submissions).toBe(0);
  });

  test.each<[string, Partial<CaDriver>, string, string]>([
    [
      'it waits after all',
      answered({ status: 'pending', reference: 'r-1' }),
      'CA_QUEUED_GENERATED_KEY',
      'waits at the CA as r-1',
    ],
    ['canceled', answered({ status: 'canceled' }), 'CA_QUEUED_GENERATED_KEY', 'canceled'],
    ['rejected', answered({ status: 'rejected', reason: 'not here' }), 'CA_REJECTED', 'not here'],
    ['down', elsewhere(() => Promise.reject(unavailable('CA_UNAVAILABLE', 'down'))), 'CA_UNAVAILABLE', 'down'],
    ['an internal failure', elsewhere(() => Promise.reject(new Error('a bug'))), 'CA_SIGNING_FAILED', 'a bug'],
    [
      'unanswered',
      elsewhere(() => Promise.reject(new SubmissionUnanswered(new Error('reset')))),
      'CA_SIGNING_FAILED',
      'possibly issued: reset',
    ],
  ])('%s: the answer, and no use is taken', async (_, driver, code, detail) => {
    const identity = await token();
    const ca = caWith({ driver });
    expect(await codeOf(sent(identity, csrWith(), { ca, operation }))).toBe(code);
    expect(await detailOf(sent(identity, csrWith(), { ca, operation }))).toBe(detail);
    expect(await store.openReservations()).toEqual([]);
  });

  test('an approved one is issued by the poll, and not left waiting at the CA', async () => {
    const ca = manual({ driver: elsewhere(() => Promise.reject(new Error('a bug'))) });
    const identity = await token();
    const id = await queued(identity, csrWith(), { ca, operation });
    expect(await codeOf(sent(identity, csrWith(), { ca, operation }))).toBe('CA_SIGNING_FAILED');
    expect((await store.getRequest(id))?.status).toBe('approved');
  });
});

describe('a poll', () => {
  test('of a used-up password finds its request, even if requests no longer wait', async () => {
    const [identity, body] = [await token(), csrWith()];
    const outcome = await sent(identity, body, { ca: manual() });
    expect(await sent({ ...identity, usable: false }, body)).toEqual(outcome);
  });

  test('of a used-up password whose request was forgotten meanwhile is 401', async () => {
    const { id } = otpRow();
    await store.insertOtp(otpRow({ id, max_uses: 1 }), []);
    const identity = otpIdentity({ otp_id: id, requester: `otp:${id}` });
    const body = csrWith();
    await sent(identity, body, { ca: manual() });
    let sought = 0;
    const from: Partial<Store> = {
      findRequest: (recognition) => (sought++ === 0 ? store.findRequest(recognition) : Promise.resolve(undefined)),
    };
    expect(await detailOf(sent({ ...identity, usable: false }, body, { from }))).toBe('used up at the reservation');
  });

  test('with uses left is issued at once when requests no longer wait', async () => {
    const [identity, body] = [await token(), csrWith()];
    expect((await sent(identity, body, { ca: manual() })).status).toBe('pending');
    expect((await sent(identity, body)).status).toBe('issued');
  });

  test('of an expired request does not say that a key was sent', async () => {
    const [identity, body, operation] = [await token(), csrWith(), 'serverkeygen' as const];
    const row = await store.getRequest(await queued(identity, body, { ca: manual(), operation }));
    if (row === undefined) throw new Error('no request');
    const from: Partial<Store> = { findRequest: () => Promise.resolve({ ...row, status: 'expired' }) };
    expect(await codeOf(sent(identity, body, { ca: manual(), operation, from }))).toBe('CERTIFICATE_MISSING');
  });

  test('of an approved request that another poll is issuing waits', async () => {
    const [identity, body, ca] = [await token(), csrWith(), manual()];
    const requestId = await queued(identity, body, { ca });
    const from: Partial<Store> = { claimRequest: () => Promise.resolve('request-taken') };
    expect(await sent(identity, body, { ca, from })).toEqual({ status: 'pending', requestId });
  });

  test('is for the device that queued it, which its certificate needs if the label required one then', async () => {
    const device = deviceRow();
    await store.putDevices([{ row: device, events: [] }], 'create');
    const { config, driver } = devices;
    for (const [before, now, required] of [
      ['required', 'required', device.key],
      ['required', 'off', device.key],
      ['off', 'off', null],
    ] as const) {
      const [identity, body] = [await token(), csrWith()];
      const label = { ...config, approval: 'manual' } as const;
      await queued(identity, body, { ca: new Ca({ ...label, devices: before }, driver) });
      const outcome = await sent(identity, body, { ca: new Ca({ ...label, devices: now }, driver) });
      if (outcome.status !== 'issued') throw new Error(outcome.status);
      const [row] = await store.getCertificates(parseCertificate(outcome.certificate).serialNumber);
      expect([row?.device_key, row?.required_device]).toEqual([device.key, required]);
    }
  });
});

describe('the reservation', () => {
  test.each([
    ['lost: it may be committed, so it is closed', true],
    ['failed: there is no result', false],
  ])('a store that is %s', async (_, isLost) => {
    let released = 0;
    const error = isLost ? new StoreLost('gone') : unavailable('STORE_UNAVAILABLE', 'no disk left');
    const from: Partial<Store> = {
      reserve: () => Promise.reject(error),
      releaseReservation: () => Promise.resolve(released++ === 0),
    };
    expect(await codeOf(sent(await token(), csrWith(), { from }))).toBe('STORE_UNAVAILABLE');
    expect(released).toBe(isLost ? 1 : 0);
  });

  test('a serial number that is taken is replaced, at most twice', async () => {
    for (const [taken, code] of [
      [2, 'granted'],
      [3, 'SERIAL_EXHAUSTED'],
    ] as const) {
      const serials: unknown[] = [];
      const from: Partial<Store> = {
        reserve: (reservation, ...more) =>
          serials.push(reservation.serial) <= taken
            ? Promise.resolve('serial-taken')
            : store.reserve(reservation, ...more),
      };
      expect(await codeOf(sent(await token(), csrWith(), { from }))).toBe(code);
      expect(new Set(serials).size).toBe(3);
    }
  });

  test('the first number is the one that was checked', async () => {
    const prepared: unknown[] = [];
    const reserved: unknown[] = [];
    const driver: Partial<CaDriver> = {
      prepare: async (request) => {
        const made = await prepareAt(devices.driver, request);
        prepared.push(made.serial);
        return made;
      },
    };
    const from: Partial<Store> = {
      reserve: (reservation, ...more) => (reserved.push(reservation.serial), store.reserve(reservation, ...more)),
    };
    await sent(await token(), csrWith(), { ca: caWith({ driver }), from });
    expect(reserved).toEqual(prepared);
  });

  test('an approved request takes its use when it is queued, and not when it is issued', async () => {
    const { id } = otpRow();
    await store.insertOtp(otpRow({ id, max_uses: 5 }), []);
    const identity = otpIdentity({ otp_id: id, requester: `otp:${id}` });
    const [body, ca] = [csrWith(), manual()];
    const request = await queued(identity, body, { ca });
    await sent(identity, body, { ca });
    expect((await store.getOtp(id))?.uses).toBe(1);
    const { items } = await store.listAudit({ limit: 1000, request_id: request });
    expect(items.filter(({ type }) => type === 'otp.used')).toHaveLength(1);
    const direct = randomUUID();
    await sent(identity, csrWith(), { requestId: direct });
    const used = await store.listAudit({ limit: 1000, request_id: direct, type: 'otp.used' });
    expect(used.items).toHaveLength(1);
  });
});
