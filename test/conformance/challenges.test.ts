/** RFC 7894 on the built server: a token in the request, and a secret to revoke its certificate with. */
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { exchange, fullRequest, inShort } from '../support/cmc.ts';
import { buildCsr, commonName, makeKey, onTheWire, otpChallenge, revocationChallenge } from '../support/csr.ts';
import { caSection, certificatesOf, Estuary, section, type EstCall } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve, usesOf } from '../support/queued-requests.ts';
import { storedElsewhere } from '../support/stored-rows.ts';

let estuary: Estuary;
const key = makeKey();
const LIMIT = 5;
const WRONG = 'Wrong0Wrong0Wrong0Wr';
const INVALID = '401 invalid OTP token';

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      section(config, 'est')['fullcmc_require_mtls'] = false;
      caSection(config, 1)['approval'] = 'manual';
    },
  });
});
afterAll(() => estuary.stop());
afterEach(async () => {
  await estuary.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
});

const enroll = (cn: string, attributes: Buffer[], more: EstCall & { path?: string } = {}): Promise<Answer> =>
  estuary.enroll(onTheWire(buildCsr(key, { subject: commonName(cn), attributes })), more);

const inWords = ({ status, text }: Answer): string => `${status} ${status === 200 ? '' : text}`.trim();

/** Every file that the server has written, and what it has logged. */
async function written(): Promise<string> {
  const data = join(estuary.dir, 'data');
  const files = readdirSync(data).map((name) => readFileSync(join(data, name), 'latin1'));
  return [...files, (await storedElsewhere(estuary.dir)).toString('latin1'), await estuary.outputSoFar()].join('\n');
}

describe('otpChallenge carries a token, with every rule of one', () => {
  test.each(['simpleenroll', 'serverkeygen'])('%s: one use, then 401', async (path) => {
    const { token, id } = await estuary.otp();
    expect((await enroll(path, [otpChallenge(token)], { path })).status).toBe(200);
    expect(await usesOf(estuary, id)).toBe(1);
    expect(inWords(await enroll('another', [otpChallenge(token)], { path }))).toBe(INVALID);
  });

  test('a wrong one counts toward the lockout; the right one is refused then', async () => {
    const { token } = await estuary.otp();
    for (let i = 0; i <= LIMIT; i++) expect(inWords(await enroll('guess', [otpChallenge(WRONG)]))).toBe(INVALID);
    expect(inWords(await enroll('guess', [otpChallenge(token)]))).toBe('401 too many failures, locked out');
  });

  test('it is looked at after the checks of the CSR: 400, and no failure', async () => {
    const body = onTheWire(
      buildCsr(key, { spki: makeKey().spki, subject: commonName('x'), attributes: [otpChallenge(WRONG)] }),
    );
    for (let i = 0; i <= LIMIT; i++) expect((await estuary.enroll(body)).status).toBe(400);
    expect(inWords(await enroll('x', [otpChallenge(WRONG)]))).toBe(INVALID);
  });

  test('HTTP Basic goes before it', async () => {
    const { token } = await estuary.otp();
    expect(inWords(await enroll('both', [otpChallenge(token)], { password: WRONG }))).toBe(INVALID);
    expect((await enroll('both', [otpChallenge(WRONG)], { password: token })).status).toBe(200);
  });

  test('simplereenroll takes none', async () => {
    const { token } = await estuary.otp();
    expect(inWords(await enroll('x', [otpChallenge(token)], { path: 'simplereenroll' }))).toBe(
      '401 client certificate required',
    );
  });

  test.each(['lab/simpleenroll', 'lab/serverkeygen'])(
    '%s, queued: the approved request is issued, and neither secret is in the store, the audit log or the log',
    async (path) => {
      const { token } = await estuary.otp();
      const attributes = [otpChallenge(token), revocationChallenge('a separate secret')];
      const cn = path.replace('/', '-');
      const poll = async (): Promise<number> => (await enroll(cn, attributes, { path })).status;
      expect([await poll(), await poll()]).toEqual([202, 202]);
      expect(await written()).toContain(`CN=${cn}`);
      expect(await written()).not.toContain(token);
      expect(await written()).not.toContain('a separate secret');
      await approve(estuary, cn);
      expect(await poll()).toBe(200);
      expect(await written()).not.toContain(token);
    },
  );
});

describe('a holder of the revocationChallenge may revoke by CMC', () => {
  const revoke = async (certificate: Certificate, secret: string): Promise<unknown> => {
    const control = buildControl(120, 'revokeRequest', {
      issuer: certificate.issuer,
      serialNumber: certificate.serialNumber,
      reason: 'keyCompromise',
      sharedSecret: Buffer.from(secret),
    });
    const reply = await exchange(estuary, await fullRequest({ controlSequence: [control] }, {}));
    return [reply.status, ...inShort(reply)];
  };
  const status = async ({ serialNumber }: Certificate, ca: string): Promise<unknown> =>
    (await estuary.admin('GET', `/admin/certificates/${serialNumber}?ca=${ca}`)).json['status'];

  test('the right secret revokes, a wrong one is counted, another certificate is not touched', async () => {
    const { token } = await estuary.otp({ max_uses: 2 });
    const enrolled = async (cn: string, secret: string): Promise<Certificate> => {
      const [der] = certificatesOf(await enroll(cn, [revocationChallenge(secret)], { password: token }));
      return parseCertificate(new X509Certificate(der ?? '').raw);
    };
    const [mine, other] = [await enrolled('mine', 'größer als Passwörter'), await enrolled('other', 'of another')];
    expect(await revoke(mine, 'of another')).toEqual([401, 'failed badIdentity [120]']);
    expect([await status(mine, 'devices'), await status(other, 'devices')]).toEqual(['valid', 'valid']);
    expect(await revoke(mine, 'größer als Passwörter')).toEqual([200, 'success [120]']);
    expect([await status(mine, 'devices'), await status(other, 'devices')]).toEqual(['revoked', 'valid']);
    for (let i = 0; i < LIMIT; i++) await revoke(other, WRONG);
    expect(inWords(await enroll('x', [otpChallenge(token)]))).toBe('401 too many failures, locked out');
    expect(await status(other, 'devices')).toBe('valid');
  });

  test('of a certificate without one nobody knows the secret', async () => {
    const { token } = await estuary.otp();
    const [der] = certificatesOf(await enroll('without', [], { password: token }));
    const certificate = parseCertificate(new X509Certificate(der ?? '').raw);
    expect(await revoke(certificate, '')).toEqual([401, 'failed badIdentity [120]']);
  });
});
