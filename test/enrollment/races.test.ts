/**
 * Another request, process or administrator came first: what the store then answers to a reservation, to the queue and
 * to a submission ends each request with a separate error.
 */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { CaDriver } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import { EstuaryError } from '../../src/errors.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { Reservation, ReserveResult } from '../../src/store/issuance-store.ts';
import type { RequestRow } from '../../src/store/request-store.ts';
import type { Store } from '../../src/store/store.ts';
import { otpRow, requestRow, T0 } from '../store/rows.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { otpIdentity, pipeline, received, remoteQueue, storeWithCa } from './support.ts';

const csr = simpleCsr(makeKey(), 'device-1');
/** Serial numbers that were to be reserved. */
let reserved: (string | null)[];

const { store, devices } = await storeWithCa();
beforeEach(() => {
  reserved = [];
});

function changed(more: Partial<Pick<CaConfig, 'approval'>>, driver: Partial<CaDriver> = {}): Ca {
  const own = devices.driver;
  const made: CaDriver = { chain: () => own.chain(), issue: (request) => own.issue(request), ...driver };
  return new Ca({ ...devices.config, ...more }, made);
}

/** A CA with a queue, which is never reached. */
const remote = (): Ca => {
  const nothing = () => Promise.reject(new Error('not in this test'));
  return changed({}, { remoteQueue: remoteQueue(), revoke: nothing });
};

/** `issued SERIAL`, `pending ID` or the error code. */
async function sent(on: Partial<Store>, ca = devices, id = '', requestId: string = randomUUID()): Promise<string> {
  const row = otpRow(id === '' ? {} : { id });
  if (id === '') await store.insertOtp(row, []);
  const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}` });
  const enrollment = pipeline({ store: { ...store, ...on }, identity, retryWindow: 1000 });
  try {
    const { outcome } = await enrollment.enroll(received(ca, csr, { requestId }));
    if (outcome.status === 'pending') return `pending ${outcome.requestId}`;
    return `issued ${parseCertificate(outcome.certificate).serialNumber}`;
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    return `${error.status} ${error.code}`;
  }
}

/** Answers each reservation with the next result, and the last one again; `reserved`: the store decides. */
function reserving(...results: readonly ReserveResult[]): Partial<Store> {
  return {
    reserve: (reservation: Reservation, ...more) => {
      const result = results[reserved.length] ?? results.at(-1) ?? 'reserved';
      reserved.push(reservation.serial);
      return result === 'reserved' ? store.reserve(reservation, ...more) : Promise.resolve(result);
    },
  };
}

describe('a reservation', () => {
  test.each<[ReserveResult, string, number]>([
    ['otp-unusable', '401 OTP_INVALID', 1],
    ['device-refused', '403 DEVICE_NOT_REGISTERED', 1],
    ['repeated', '503 REQUEST_UNDER_WAY', 5],
    ['serial-taken', '500 SERIAL_EXHAUSTED', 3],
  ])('%s: %s, after %i attempts', async (result, error, attempts) => {
    expect(await sent(reserving(result))).toBe(error);
    expect(reserved).toHaveLength(attempts);
    expect(await store.openReservations()).toEqual([]);
  });

  test('a serial number that is taken is replaced, and the certificate has the one that was reserved', async () => {
    const outcome = await sent(reserving('serial-taken', 'serial-taken', 'reserved'));
    expect(new Set(reserved).size).toBe(3);
    expect(outcome).toBe(`issued ${reserved[2]}`);
  });
});

describe('the queue, and a submission to a remote CA', () => {
  const found = requestRow({ id: 'found' });

  test.each<[string, string]>([
    ['otp-unusable', '401 OTP_INVALID'],
    ['device-refused', '403 DEVICE_NOT_REGISTERED'],
    ['an identical request', 'pending found'],
  ])('%s: %s', async (name, outcome) => {
    const result = name === 'an identical request' ? found : (name as 'otp-unusable' | 'device-refused');
    const answers = () => Promise.resolve(result);
    expect(await sent({ queueRequest: answers }, changed({ approval: 'manual' }))).toBe(outcome);
    expect(await sent({ submitRequest: answers }, remote())).toBe(outcome);
  });

  test('a submission that repeats one in progress is 503', async () => {
    let submitted = 0;
    const submitRequest = () => Promise.resolve((submitted++, 'repeated' as const));
    expect(await sent({ submitRequest }, remote())).toBe('503 REQUEST_UNDER_WAY');
    expect(submitted).toBe(5);
  });

  test('of an approved request that another poll is issuing, the poll waits; once issued, it has the certificate', async () => {
    const ca = changed({ approval: 'manual' });
    const row = otpRow();
    await store.insertOtp(row, []);
    const id = (await sent({}, ca, row.id)).replace('pending ', '');
    expect(await store.decideRequest({ id, status: 'approved', reason: null, decided_at: T0 }, [])).toBe('decided');
    const claimRequest = () => Promise.resolve('request-taken' as const);
    expect(await sent({ claimRequest }, ca, row.id)).toBe(`pending ${id}`);
    const seen: RequestRow[] = [];
    const other: Partial<Store> = {
      claimRequest: async () => {
        seen.push(...[await store.getRequest(id)].filter((request) => request !== undefined));
        await sent({}, ca, row.id);
        return 'request-taken';
      },
    };
    const outcome = await sent(other, ca, row.id);
    expect(seen).toMatchObject([{ status: 'approved' }]);
    expect(outcome).toBe(`issued ${(await store.getRequest(id))?.serial}`);
  });
});
