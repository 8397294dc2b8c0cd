/** A repeated request with the token that it used, in the pipeline. */
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { prepareAt, type PreparedIssuance } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import type { OtpIdentity } from '../../src/auth/identity.ts';
import type { ReceivedByEst } from '../../src/enrollment/request.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { OtpRow } from '../../src/store/otp-store.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, otpIdentity, received } from './support.ts';

const HOUR = 3_600_000;
const folder = temporaryFolder();
let store: Store;
let devices: Ca;
let queued: Ca;
const key = makeKey();
const csr = simpleCsr(key, 'device-1', ['device-1.example']);

/** What signing waits for. */
let held: Promise<void> = Promise.resolve();
let signatures = 0;
let failing = false;
let now = T0 + 1000;

beforeAll(async () => {
  store = await openedIn(folder, () => now);
  const made = await fileCa(folder, 'devices', true);
  const watched = (approval: 'auto' | 'manual'): Ca => new Ca({ ...made.config, approval }, slow(made));
  devices = watched('auto');
  queued = watched('manual');
});
afterAll(async () => {
  await store.close();
  folder.remove();
});
beforeEach(() => {
  held = Promise.resolve();
  signatures = 0;
  failing = false;
  now = T0 + 1000;
});

function slow({ driver }: Ca): ConstructorParameters<typeof Ca>[1] {
  const watched = (prepared: PreparedIssuance): PreparedIssuance => ({
    ...prepared,
    issue: async () => {
      await held;
      if (failing) throw new Error('the HSM is on fire');
      signatures += 1;
      return prepared.issue();
    },
  });
  return {
    chain: () => driver.chain(),
    issue: () => Promise.reject(new Error('it was not prepared')),
    prepare: async (request) => watched(await prepareAt(driver, request)),
  };
}

interface Sending extends Partial<Omit<ReceivedByEst, 'body'>> {
  readonly body?: Buffer;
  readonly retryWindow?: number;
  readonly maxWait?: number;
  /** As the authentication found the token, where that was earlier. */
  readonly found?: Partial<OtpIdentity>;
}

/** A device with a token. */
class Device {
  readonly id: string;

  private constructor(id: string) {
    this.id = id;
  }

  static async with(max_uses = 1, more: Partial<OtpRow> = {}): Promise<Device> {
    const row = otpRow({ max_uses, ...more });
    await store.insertOtp(row, []);
    return new Device(row.id);
  }

  /** As the authentication finds the token now. */
  async identity(): Promise<OtpIdentity> {
    const { id } = this;
    const row = await store.getOtp(id);
    const dead = row?.revoked_at != null ? 'is revoked' : (row?.expires_at ?? 0) <= now ? 'has expired' : undefined;
    const usable = dead === undefined && (row?.uses ?? 0) < (row?.max_uses ?? 0);
    return otpIdentity({ otp_id: id, requester: `otp:${id}`, usable, dead, lockoutKeys: ['address:192.0.2.1'] });
  }

  async uses(): Promise<number | undefined> {
    return (await store.getOtp(this.id))?.uses;
  }

  async revoke(): Promise<void> {
    await store.revokeOtp(this.id, now, []);
  }

  /** `issued SERIAL`, `pending`, or the error code, with its detail if that mentions counting. */
  async send({
    body = csr,
    retryWindow = HOUR,
    maxWait = 60_000,
    ca = devices,
    found,
    ...more
  }: Sending = {}): Promise<string> {
    const identity = { ...(await this.identity()), ...found };
    const enrollment = pipeline({ store, identity, retryWindow, maxWait, now: () => now });
    try {
      const { outcome } = await enrollment.enroll(received(ca, body, { requestId: randomUUID(), ...more }));
      if (outcome.status === 'pending') return 'pending';
      return `issued ${parseCertificate(outcome.certificate).serialNumber}`;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && 'detail' in error)) throw error;
      const counting = String(error.detail).match(/not counted|counted/)?.[0];
      return [String(error.code), counting].filter((part) => part !== undefined).join(' ');
    }
  }
}

const REFUSED = 'OTP_INVALID not counted';
const FAILURE = 'OTP_INVALID counted';

describe('with otp.retry_window = 0', () => {
  test('the same request with the token that was used for it is 401 and no failure; another one is one', async () => {
    const device = await Device.with();
    const plain = { retryWindow: 0 };
    expect(await device.send(plain)).toMatch('issued');
    expect(await device.send(plain)).toBe(REFUSED);
    expect(await device.send({ ...plain, body: simpleCsr(key, 'device-2') })).toBe(FAILURE);
    expect(await device.send({ ...plain, body: simpleCsr(makeKey(), 'device-1', ['device-1.example']) })).toBe(FAILURE);
    expect(await device.send({ ...plain, operation: 'serverkeygen' })).toBe(FAILURE);
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });

  test('also while the first request is in progress', async () => {
    const device = await Device.with();
    let letGo = (): void => undefined;
    held = new Promise((resolve) => (letGo = resolve));
    const first = device.send({ retryWindow: 0 });
    while ((await device.uses()) === 0) await setImmediate();
    expect(await device.send({ retryWindow: 0 })).toBe(REFUSED);
    letGo();
    expect(await first).toMatch('issued');
  });

  test('a token with uses left gets a certificate for each of its uses, as ever', async () => {
    const device = await Device.with(2);
    const [first, second] = [await device.send({ retryWindow: 0 }), await device.send({ retryWindow: 0 })];
    expect([first === second, signatures, await device.uses()]).toEqual([false, 2, 2]);
  });

  test('also while the first request is in progress: the second one does not wait for it', async () => {
    const device = await Device.with(2);
    let letGo = (): void => undefined;
    held = new Promise((resolve) => (letGo = resolve));
    const first = device.send({ retryWindow: 0 });
    while ((await device.uses()) === 0) await setImmediate();
    const state = { answered: false };
    const second = device.send({ retryWindow: 0, maxWait: 0 }).finally(() => (state.answered = true));
    while (!state.answered && (await device.uses()) === 1) await setImmediate();
    letGo();
    expect(await second).toMatch('issued');
    expect(await first).not.toBe(await second);
    expect([signatures, await device.uses()]).toEqual([2, 2]);
  });
});

describe('within the window', () => {
  test.each([1, 3])('a repeat gets the certificate that was issued; a token of %d uses loses one', async (uses) => {
    const device = await Device.with(uses);
    const first = await device.send();
    expect(first).toMatch('issued');
    expect([await device.send(), await device.send()]).toEqual([first, first]);
    expect([signatures, await device.uses()]).toEqual([1, 1]);
    now += HOUR - 1000;
    expect(await device.send()).toBe(first);
  });

  test('each repeat is in the audit log, with the certificate and the first request', async () => {
    const device = await Device.with();
    const requestId = randomUUID();
    const serial = (await device.send({ requestId })).replace('issued ', '');
    const repeats = async () =>
      (await store.listAudit({ limit: 1000, type: 'auth.otp' })).items.filter((item) => item.serial === serial);
    const before = await repeats();
    for (const times of [1, 2]) {
      await device.send();
      const added = (await repeats()).slice(before.length);
      expect(added.map(({ detail }) => detail)).toEqual(
        Array<string>(times).fill(`; repeats the response to ${requestId}`),
      );
    }
  });

  test.each([1, 3])('twenty at once get one certificate, of a token of %d uses', async (uses) => {
    const device = await Device.with(uses);
    const answers = new Set(await Promise.all(Array.from({ length: 20 }, () => device.send())));
    expect([...answers]).toEqual([expect.stringMatching('issued')]);
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });

  test('of different requests of one use one wins, and each of its repeats has its certificate', async () => {
    const device = await Device.with();
    const names = ['a', 'b', 'c'];
    const all = names.flatMap((name) => [name, name, name]);
    const answers = await Promise.all(all.map((name) => device.send({ body: simpleCsr(key, name) })));
    const issued = answers.filter((answer) => answer.startsWith('issued'));
    expect([issued.length, new Set(issued).size, signatures]).toEqual([3, 1, 1]);
    expect(answers.filter((answer) => answer.startsWith('OTP_INVALID'))).toHaveLength(6);
  });

  test('a repeat waits for the first, and takes the use that comes back where that fails', async () => {
    const device = await Device.with();
    let letGo = (): void => undefined;
    held = new Promise((resolve) => (letGo = resolve));
    failing = true;
    const first = device.send();
    while ((await device.uses()) === 0) await setImmediate();
    const looked = vi.spyOn(store, 'findOtpUse');
    const second = device.send();
    await expect.poll(() => looked.mock.calls.length).toBeGreaterThan(0);
    looked.mockRestore();
    letGo();
    expect(await first).toBe('CA_SIGNING_FAILED');
    failing = false;
    expect(await second).toMatch('issued');
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });

  test('it waits no longer than the time for a request, nor for nobody', async () => {
    const device = await Device.with();
    let letGo = (): void => undefined;
    held = new Promise((resolve) => (letGo = resolve));
    const first = device.send();
    while ((await device.uses()) === 0) await setImmediate();
    expect(await device.send({ maxWait: 50 })).toBe('REQUEST_UNDER_WAY');
    expect(await device.send({ isGone: () => true })).toBe('REQUEST_UNDER_WAY');
    letGo();
    expect(await device.send()).toBe(await first);
  });

  test('a request for a generated key is KEY_SENT_ONCE', async () => {
    const device = await Device.with();
    expect(await device.send({ operation: 'serverkeygen' })).toMatch('issued');
    const again = makeKey();
    for (const body of [csr, simpleCsr(again, 'device-1', ['device-1.example'])])
      expect(await device.send({ operation: 'serverkeygen', body })).toBe('KEY_SENT_ONCE');
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });
});

describe('a token without a use, and no request that it was used for', () => {
  test.each<[string, (device: Device) => Promise<unknown>]>([
    ['revoked', (device) => device.revoke()],
    ['expired', () => Promise.resolve((now = T0 + 86_400_000))],
  ])('%s: 401, a failure, and no use is taken', async (_, end) => {
    const device = await Device.with();
    await end(device);
    expect(await device.send()).toBe(FAILURE);
    expect([signatures, await device.uses()]).toEqual([0, 0]);
  });

  test('a use that came back after the token was looked at is taken', async () => {
    const device = await Device.with();
    expect(await device.send({ found: { usable: false } })).toMatch('issued');
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });
});

describe('what ends it, none of it a failure', () => {
  test.each<[string, (device: Device, serial: string) => Promise<unknown>]>([
    ['the window', () => Promise.resolve((now += HOUR))],
    ['the expiry of the token', () => Promise.resolve((now = T0 + 86_400_000))],
    ['an administrator who revokes the token', ({ id }) => store.revokeOtp(id, now, [])],
    [
      'an administrator who revokes the certificate',
      (_, serial) =>
        store.revokeCertificate(
          { ca: 'devices', serial, revoked_at: now, reason: 'keyCompromise', invalidity_date: null },
          [],
        ),
    ],
  ])('%s', async (_, end) => {
    const device = await Device.with();
    const first = await device.send({ retryWindow: 30 * HOUR });
    await end(device, first.replace('issued ', ''));
    expect(await device.send()).toBe(REFUSED);
  });

  test.each<[string, (device: Device) => Promise<unknown>]>([
    ['the token expires', () => Promise.resolve((now = T0 + 86_400_000))],
    ['an administrator revokes the token', ({ id }) => store.revokeOtp(id, now, [])],
  ])('while a repeat waits for the first request, %s: 401, and the first one has its certificate', async (_, end) => {
    const device = await Device.with();
    let letGo = (): void => undefined;
    held = new Promise((resolve) => (letGo = resolve));
    const first = device.send({ retryWindow: 30 * HOUR });
    while ((await device.uses()) === 0) await setImmediate();
    const waiting = device.send({ retryWindow: 30 * HOUR });
    const looked = vi.spyOn(store, 'findOtpUse');
    await expect.poll(() => looked.mock.calls.length).toBeGreaterThan(0);
    looked.mockRestore();
    await end(device);
    letGo();
    expect(await first).toMatch('issued');
    expect(await waiting).toBe('OTP_INVALID');
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });

  test('a revoked certificate is not followed by another one of the same key within the window', async () => {
    const device = await Device.with(5);
    const serial = (await device.send()).replace('issued ', '');
    await store.revokeCertificate(
      { ca: 'devices', serial, revoked_at: now, reason: 'keyCompromise', invalidity_date: null },
      [],
    );
    expect(await device.send()).toBe('OTP_INVALID');
    expect(await device.uses()).toBe(1);
  });
});

describe('a queued request', () => {
  test('is polled as ever; its certificate is there within the window when its record is gone', async () => {
    const device = await Device.with();
    const [id, ca] = [randomUUID(), queued];
    expect(await device.send({ ca, requestId: id })).toBe('pending');
    expect(await device.send({ ca })).toBe('pending');
    await store.decideRequest({ id, status: 'approved', reason: null, decided_at: now }, []);
    const answers = await Promise.all([device.send({ ca }), device.send({ ca })]);
    const [issued] = answers.filter((answer) => answer.startsWith('issued'));
    expect(await device.send({ ca })).toBe(issued);
    await store.expireRequests({ pending_ttl: 1, retention: 0 }, now);
    expect(await store.getRequest(id)).toBeUndefined();
    expect(await device.send({ ca })).toBe(issued);
    expect(await device.send({ ca, retryWindow: 0 })).toBe(REFUSED);
    expect([signatures, await device.uses()]).toEqual([1, 1]);
  });

  test.each<[string, (device: Device) => Promise<unknown>]>([
    ['revoked', (device) => device.revoke()],
    ['expired', () => Promise.resolve((now = T0 + 86_400_000))],
  ])('is not polled with a token that is %s: 401, no failure', async (_, end) => {
    const device = await Device.with();
    expect(await device.send({ ca: queued })).toBe('pending');
    await end(device);
    expect(await device.send({ ca: queued })).toBe(REFUSED);
  });

  test('rejected and forgotten, it is 401 and no failure', async () => {
    const device = await Device.with();
    const [id, ca] = [randomUUID(), queued];
    await device.send({ ca, requestId: id });
    await store.decideRequest({ id, status: 'rejected', reason: 'no', decided_at: now }, []);
    expect(await device.send({ ca })).toBe('REQUEST_REJECTED');
    await store.expireRequests({ pending_ttl: 1, retention: 0 }, now);
    expect(await device.send({ ca })).toBe(REFUSED);
  });
});

describe('a certificate that has expired answers no repeat', () => {
  const EVER = { retryWindow: 100 * 365 * 24 * HOUR };
  const outliving = { expires_at: T0 + EVER.retryWindow };
  const notAfter = async (answer: string): Promise<number> =>
    (await store.getCertificates(answer.replace('issued ', '')))[0]?.not_after ?? NaN;

  test('a token with uses left gets another certificate for it; a used one is 401 and no failure', async () => {
    const [used, left] = [await Device.with(1, outliving), await Device.with(2, outliving)];
    const [first, second] = [await used.send(EVER), await left.send(EVER)];
    now = Math.min(await notAfter(first), await notAfter(second));
    expect([await used.send(EVER), await left.send(EVER)]).toEqual([first, second]);
    now = Math.max(await notAfter(first), await notAfter(second)) + 1;
    expect(await used.send(EVER)).toBe(REFUSED);
    const next = await left.send(EVER);
    expect([next.startsWith('issued'), next === second, await left.uses()]).toEqual([true, false, 2]);
  });

  test('a request that was queued before is queued again', async () => {
    const device = await Device.with(2, outliving);
    const [id, ca] = [randomUUID(), queued];
    await device.send({ ca, requestId: id });
    await store.decideRequest({ id, status: 'approved', reason: null, decided_at: now }, []);
    const issued = await device.send({ ca });
    now = await notAfter(issued);
    expect(await device.send({ ca })).toBe(issued);
    now += 1;
    expect([await device.send({ ca }), await device.uses()]).toEqual(['pending', 2]);
  });
});
