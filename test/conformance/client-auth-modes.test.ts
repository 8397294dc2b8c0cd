/** Service specification, "mTLS": the four modes, each row of the table. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { untilLogged } from '../support/server-process.ts';

const key = makeKey();
const wire = onTheWire(simpleCsr(key));
let estuary: Estuary;
let device: ClientIdentity;
let stranger: ClientIdentity;

const mode = async (name: string): Promise<void> => {
  await estuary.server.stop();
  estuary.reconfigure((config) => {
    section(config, 'tls', 'client_auth')['mode'] = name;
  });
  await estuary.restart();
};

/** A certificate of an unknown authority. */
function strangersCertificate(dir: string): ClientIdentity {
  const file = (name: string): string => join(dir, name);
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', '-batch'],
    ...['-subj', '/CN=stranger', '-keyout', file('stranger.key'), '-out', file('stranger.pem')],
  ]);
  return { cert: readFileSync(file('stranger.pem'), 'latin1'), key: readFileSync(file('stranger.key'), 'latin1') };
}

beforeAll(async () => {
  estuary = await Estuary.start();
  device = await estuary.enrolled(key);
  stranger = strangersCertificate(estuary.dir);
});
afterAll(() => estuary.stop());

describe.each(['optional', 'required_for_reenroll'])('mode %s: a certificate is verified if presented', (name) => {
  beforeAll(() => mode(name));

  test('without a certificate, enrollment falls back to the OTP', async () => {
    const { token } = await estuary.otp();
    expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
  });

  test('with a valid certificate, enrollment needs nothing else', async () => {
    expect((await estuary.enroll(wire, { client: device })).status).toBe(200);
  });

  test('a certificate of an unknown authority alone is refused', async () => {
    const answer = await estuary.enroll(wire, { client: stranger });
    expect(answer.status).toBe(401);
    expect(answer.text).toBe('certificate signed by unknown authority');
  });

  test('with such a certificate the OTP still counts', async () => {
    const { token } = await estuary.otp();
    expect((await estuary.enroll(wire, { client: stranger, password: token })).status).toBe(200);
  });

  test('re-enrollment needs a certificate, whatever the OTP says', async () => {
    const { id, token } = await estuary.otp();
    const answer = await estuary.enroll(wire, { password: token, path: 'simplereenroll' });
    expect(answer.status).toBe(401);
    expect(answer.text).toBe('client certificate required');
    expect((await estuary.admin('GET', `/admin/otp/${id}`)).json['uses']).toBe(0);
  });

  test('re-enrollment with one of an unknown authority is refused', async () => {
    const answer = await estuary.enroll(wire, { client: stranger, path: 'simplereenroll' });
    expect(answer.status).toBe(401);
    expect(answer.text).toBe('certificate signed by unknown authority');
  });

  test('re-enrollment with the certificate succeeds', async () => {
    expect((await estuary.enroll(wire, { client: device, path: 'simplereenroll' })).status).toBe(200);
  });

  test('cacerts asks for nothing', async () => {
    expect((await estuary.est('cacerts')).status).toBe(200);
    expect((await estuary.est('cacerts', { client: stranger })).status).toBe(200);
  });
});

describe('mode required: every endpoint needs a valid certificate', () => {
  beforeAll(() => mode('required'));

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s: the handshake fails without one', async (version) => {
    const tls = { minVersion: version, maxVersion: version };
    await expect(estuary.est('cacerts', { tls })).rejects.toThrow();
    const { token } = await estuary.otp();
    await expect(estuary.enroll(wire, { password: token, tls })).rejects.toThrow();
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '%s: the handshake fails when the issuer is untrusted',
    async (version) => {
      const tls = { minVersion: version, maxVersion: version };
      await expect(estuary.est('cacerts', { client: stranger, tls })).rejects.toThrow();
    },
  );

  test('the log names the algorithm and the certificate if its signature is too weak', async () => {
    const file = (name: string): string => join(estuary.dir, name);
    const request = ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-batch'];
    execFileSync('openssl', [...request, '-subj', '/CN=weak', '-keyout', file('weak.key'), '-out', file('weak.csr')]);
    const ca = ['-CA', file('ca/issuing.pem'), '-CAkey', file('ca/issuing.key'), '-set_serial', '1', '-sha1'];
    execFileSync('openssl', ['x509', '-req', '-in', file('weak.csr'), ...ca, '-out', file('weak.pem')]);
    const client = { cert: readFileSync(file('weak.pem'), 'latin1'), key: readFileSync(file('weak.key'), 'latin1') };
    const tls = { ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(estuary.est('cacerts', { client, tls })).rejects.toThrow();
    const detail = 'client certificate refused: CN=weak is signed with ecdsa-with-SHA1, which is not accepted';
    await untilLogged(estuary.server, { msg: 'TLS handshake failed', detail });
  });

  test('with one, cacerts, enrollment and re-enrollment answer', async () => {
    expect((await estuary.est('cacerts', { client: device })).status).toBe(200);
    expect((await estuary.enroll(wire, { client: device })).status).toBe(200);
    expect((await estuary.enroll(wire, { client: device, path: 'simplereenroll' })).status).toBe(200);
  });
});

describe('mode none: no certificate is verified', () => {
  beforeAll(() => mode('none'));

  test('the OTP authenticates; a certificate does not', async () => {
    const { token } = await estuary.otp();
    expect((await estuary.enroll(wire, { client: stranger, password: token })).status).toBe(200);
    const answer = await estuary.enroll(wire, { client: device });
    expect(answer.status).toBe(401);
    expect(answer.text, 'nothing that counts was presented').toBe('');
  });

  test('nobody can re-enroll', async () => {
    const answer = await estuary.enroll(wire, { client: device, path: 'simplereenroll' });
    expect(answer.status).toBe(401);
    expect(answer.text).toBe('client certificate required');
  });

  test('the server warns at its start', async () => {
    await estuary.outputSoFar();
    const warnings = estuary.server.log().filter((line) => line['key'] === 'tls.client_auth.mode');
    expect(warnings).toHaveLength(1);
  });
});
