/** The same request again with the token that was used for it. */
import { X509Certificate } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatesOf, Estuary, section } from '../support/estuary.ts';

let estuary: Estuary;
const key = makeKey();
/** With a new signature each time, as libest sends its retries. */
const request = (cn: string): string => onTheWire(simpleCsr(key, cn));
const LIMIT = 5;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      const otp = section(config, 'otp');
      otp['retry_window'] = 3600;
    },
  });
});
afterAll(() => estuary.stop());
afterEach(async () => {
  await estuary.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
});

/** `200 SERIAL`, or the status with the text. */
async function send(cn: string, password: string, path = 'simpleenroll'): Promise<string> {
  const answer = await estuary.enroll(request(cn), { password, path });
  const [der] = answer.status === 200 && path === 'simpleenroll' ? certificatesOf(answer) : [];
  return `${answer.status} ${der === undefined ? answer.text.trimEnd() : new X509Certificate(der).serialNumber}`;
}

async function uses(id: string): Promise<unknown> {
  return (await estuary.admin('GET', `/admin/otp/${id}`)).json['uses'];
}

/** As many failures as are tolerated. */
async function guess(times: number): Promise<string[]> {
  const answers: string[] = [];
  for (let i = 0; i < times; i++) answers.push(await send('guess', 'Wrong0Wrong0Wrong0Wr'));
  return answers;
}

const INVALID = '401 invalid OTP token';

describe('otp.retry_window = 3600', () => {
  test('ten at once, each on a separate connection, and one later: one certificate, one use', async () => {
    const { token, id } = await estuary.otp({ max_uses: 3 });
    const answers = await Promise.all(Array.from({ length: 10 }, () => send('parallel', token)));
    const all = new Set([...answers, await send('parallel', token)]);
    expect([...all]).toEqual([expect.stringMatching(/^200 [0-9A-F]+$/)]);
    expect(await uses(id)).toBe(1);
  });

  test('a repeat neither adds to the lockout count nor clears it', async () => {
    const { token } = await estuary.otp();
    await send('counted', token);
    await guess(LIMIT);
    for (let i = 0; i < 3; i++) expect(await send('counted', token)).toMatch('200');
    expect(await guess(2)).toEqual([INVALID, '401 too many failures, locked out']);
  });

  test('a repeat of serverkeygen is 403 and no failure', async () => {
    const { token } = await estuary.otp();
    expect(await send('generated', token, 'serverkeygen')).toMatch('200');
    for (let i = 0; i < LIMIT + 2; i++)
      expect(await send('generated', token, 'serverkeygen')).toMatch('403 The private key was sent with certificate');
    expect(await guess(1)).toEqual([INVALID]);
  });

  test.each<[string, (id: string, serial: string) => Promise<{ status: number }>]>([
    ['the token', (id) => estuary.admin('DELETE', `/admin/otp/${id}`)],
    [
      'the certificate',
      (_, serial) =>
        estuary.admin('POST', `/admin/certificates/${serial.toLowerCase()}/revoke`, { reason: 'superseded' }),
    ],
  ])('an administrator who revokes %s ends it: 401, and no failure', async (what, revoke) => {
    const { token, id } = await estuary.otp();
    const serial = (await send(what, token)).replace('200 ', '');
    expect((await revoke(id, serial)).status).toBeLessThan(300);
    for (let i = 0; i < LIMIT + 2; i++) expect(await send(what, token)).toBe(INVALID);
    expect(await send('another', token)).toBe(INVALID);
  });

  test('with the window closed: 401, and no failure; another request with the token is one', async () => {
    const { token } = await estuary.otp();
    await send('closed', token);
    estuary.reconfigure((config) => {
      section(config, 'otp')['retry_window'] = 0;
    });
    await estuary.server.stop();
    await estuary.restart();
    for (let i = 0; i < LIMIT + 2; i++) expect(await send('closed', token)).toBe(INVALID);
    await guess(LIMIT - 1);
    expect([await send('open', token), await send('open', token), await send('closed', token)]).toEqual([
      INVALID,
      INVALID,
      '401 too many failures, locked out',
    ]);
  });
});
