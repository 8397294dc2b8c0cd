/** A success does not clear the lockout count. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, itemsOf } from '../support/estuary.ts';
import { approve } from '../support/queued-requests.ts';

const LIMIT = 5;
const INVALID = '401 invalid OTP token\n';
const LOCKED = '401 too many failures, locked out\n';

let estuary: Estuary;
const key = makeKey();
const good = (cn: string): string => onTheWire(simpleCsr(key, cn));
const BAD = Buffer.from('no CSR').toString('base64');

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      caSection(config, 1)['approval'] = 'manual';
    },
  });
});
afterAll(() => estuary.stop());
afterEach(async () => {
  await estuary.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
});

async function guess(times: number): Promise<string[]> {
  const answers: string[] = [];
  for (let i = 0; i < times; i++) {
    const { status, text } = await estuary.enroll(good('guess'), { password: 'Wrong0Wrong0Wrong0Wr' });
    answers.push(`${status} ${text.trimEnd()}\n`);
  }
  return answers;
}

/** Whether the count stands where it stood after as many failures as are tolerated. */
const expectCounted = async (): Promise<void> => expect(await guess(2)).toEqual([INVALID, LOCKED]);

describe('a live token whose request comes to nothing clears no count', () => {
  test.each([
    ['simpleenroll', BAD],
    ['serverkeygen', BAD],
    ['lab/simpleenroll', BAD],
    ['lab/serverkeygen', BAD],
    ['simpleenroll', onTheWire(simpleCsr(makeKey('rsa1024'), 'refused-by-policy'))],
  ])('%s', async (path, body) => {
    const { token } = await estuary.otp({ max_uses: 3 });
    await guess(LIMIT);
    expect((await estuary.enroll(body, { password: token, path })).status).toBe(400);
    await expectCounted();
  });
});

describe('a use that was taken clears no count', () => {
  test.each([
    ['simpleenroll', 200],
    ['serverkeygen', 200],
    ['lab/simpleenroll', 202],
    ['lab/serverkeygen', 202],
  ])('%s: %d', async (path, status) => {
    const { token } = await estuary.otp();
    await guess(LIMIT);
    expect((await estuary.enroll(good(path.replace('/', '-')), { password: token, path })).status).toBe(status);
    await expectCounted();
  });
});

test('a poll of a queued request, and the certificate it comes to, neither add nor clear', async () => {
  const { token } = await estuary.otp({ max_uses: 2 });
  const poll = async (): Promise<number> =>
    (await estuary.enroll(good('polled'), { password: token, path: 'lab/simpleenroll' })).status;
  expect(await poll()).toBe(202);
  await guess(LIMIT);
  expect(await poll()).toBe(202);
  await approve(estuary, 'polled');
  expect(await poll()).toBe(200);
  await expectCounted();
});

describe('the use of a token has its own audit type', () => {
  const records = async (id: string): Promise<Record<string, unknown>[]> =>
    itemsOf((await estuary.admin('GET', '/admin/audit?type=otp.used&limit=1000')).json).filter(
      ({ detail }) => detail === `token ${id}`,
    );

  test('one record for the certificate, none for a request that is refused', async () => {
    const { token, id } = await estuary.otp({ client_id: 'used-1' });
    expect((await estuary.enroll(BAD, { password: token })).status).toBe(400);
    expect(await records(id)).toEqual([]);
    expect((await estuary.enroll(good('used-1'), { password: token })).status).toBe(200);
    const [record, ...more] = await records(id);
    expect(record).toMatchObject({ outcome: 'success', subject: 'used-1', address: '127.0.0.1', ca: 'devices' });
    expect([record?.['request_id'], more]).toEqual([expect.any(String), []]);
  });

  test('one for a queued request and the certificate it comes to', async () => {
    const { token, id } = await estuary.otp({ client_id: 'used-2' });
    const poll = async (): Promise<number> =>
      (await estuary.enroll(good('used-2'), { password: token, path: 'lab/simpleenroll' })).status;
    expect(await poll()).toBe(202);
    await approve(estuary, 'used-2');
    expect(await poll()).toBe(200);
    expect(await records(id)).toMatchObject([{ subject: 'used-2', ca: 'lab' }]);
  });
});

test('the overview counts each rejected request by its code, also those that the audit log counts once a minute', async () => {
  const counts = async (): Promise<Record<string, unknown>> => {
    const { rejections } = (await estuary.admin('GET', '/admin/overview')).json as {
      rejections: { total: number; codes: { code: string; count: number; audit_type: string }[] };
    };
    for (const { code, audit_type } of rejections.codes)
      expect(audit_type, code).toBe({ LOCKED_OUT: 'lockout.started', OTP_INVALID: 'auth.otp' }[code] ?? audit_type);
    const codes = Object.fromEntries(rejections.codes.map(({ code, count }) => [code, count]));
    return { total: rejections.total, ...codes };
  };
  const before = await counts();
  const plus = (name: string, count: number): number => Number(before[name] ?? 0) + count;
  const answers = await guess(40);
  const locked = answers.filter((answer) => answer === LOCKED).length;
  expect(locked).toBeGreaterThan(30);
  expect(await counts()).toEqual({
    ...before,
    total: plus('total', 40),
    LOCKED_OUT: plus('LOCKED_OUT', locked),
    OTP_INVALID: plus('OTP_INVALID', 40 - locked),
  });
  const { items } = (await estuary.admin('GET', '/admin/statistics')).json as { items: { rejected: number }[] };
  expect(items.reduce((sum, { rejected }) => sum + rejected, 0)).toBe(plus('total', 40));
});
