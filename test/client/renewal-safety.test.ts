/** What a renewal must not do: send a used password, or replace a working certificate with an unusable one. */
import { describe, expect, test } from 'vitest';
import { ClientError } from '../../src/client/client-error.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { basicConstraints, dns, extKeyUsage, keyUsage, subjectAltName } from '../support/certificates.ts';
import { ClientWorld, DAY, START } from '../support/client-world.ts';

const HOUR = 3_600_000;
const serverOnly = [keyUsage('digitalSignature'), extKeyUsage(OID.serverAuth), subjectAltName(dns('web.example'))];

describe('a used one-time password', () => {
  test('is not sent again when the certificate cannot authenticate its renewal; the cause is named', async () => {
    const world = await ClientWorld.make();
    world.changes = { extensions: serverOnly };
    await world.step();
    expect(world.log.join('\n')).toMatch(/cannot authenticate its own renewal: .* serverAuth, without clientAuth/);
    await world.until(START + 9 * DAY);
    expect(world.passwords).toEqual(['secret']);
    expect(world.requests).toHaveLength(1);
    expect((await world.step('renew')).error).toMatchObject({
      code: 'CREDENTIALS_MISSING',
      message: expect.stringMatching(
        /its extended key usage is serverAuth, without clientAuth.*Put a new one-time password into OTP/,
      ) as unknown,
    });
  });

  test('is not sent again after the certificate expired', async () => {
    const world = await ClientWorld.make();
    await world.step();
    world.decide = () => new ClientError('later', 'SERVER_UNAVAILABLE', 'simplereenroll: 503');
    await world.until(START + 12 * DAY);
    expect(world.passwords).toEqual(['secret']);
    world.decide = () => new ClientError('unauthenticated', 'REFUSED', 'simplereenroll: 401');
    expect((await world.step('renew')).error).toMatchObject({
      message: expect.stringMatching(/; the certificate expired .*no unused password/) as unknown,
    });
  });

  test('is replaced by a new one, which is sent', async () => {
    const world = await ClientWorld.make();
    world.changes = { extensions: serverOnly };
    await world.step();
    await world.until(START + 8 * DAY);
    world.otp = 'another';
    await world.until(START + 9 * DAY);
    expect(world.passwords).toEqual(['secret', 'another']);
    expect(world.live?.version).toBe(2);
  });

  test('is sent again with the request that it was sent with, after each lost response and each kill', async () => {
    const whole = await ClientWorld.make();
    whole.lives = 1e9;
    await whole.step();
    for (let killedAt = 0; killedAt < 1e9 - whole.lives; killedAt++) {
      const world = new ClientWorld(whole.cas.issuer);
      world.decide = () => (world.requests.length === 1 ? 'lose' : 'issue');
      world.lives = killedAt;
      await world.step();
      world.lives = Infinity;
      await world.until(START + 2 * HOUR);
      expect([world.live?.version, world.issued.length], `killed at ${killedAt}`).toEqual([1, 1]);
    }
  });

  test('leaves no trace that reveals it', async () => {
    const world = await ClientWorld.make();
    await world.step();
    const files = [...world.entries.values()].map((entry) => (entry.kind === 'file' ? entry.content : ''));
    expect([...files, ...world.log].join('\n')).not.toContain('secret');
  });
});

describe('a certificate that is not valid yet', () => {
  const later = { notBefore: START + 12 * DAY, notAfter: START + 22 * DAY };

  test('does not replace a valid one until it is valid', async () => {
    const world = await ClientWorld.make();
    world.lifetime = 14 * DAY;
    await world.step();
    world.changes = later;
    expect(await world.step('renew')).toMatchObject({ outcome: 'changed', next: later.notBefore });
    expect(world.log.join('\n')).toContain(
      'valid only from 2026-12-04T00:00:00.000Z: the current one stays until then',
    );
    await world.until(later.notBefore - 1000);
    expect([world.live?.version, world.hooks.length, world.requests.length]).toEqual([1, 1, 2]);
    await world.until(later.notBefore + 2000);
    expect([world.live?.version, world.requests.length]).toEqual([2, 2]);
    expect(world.hooks).toEqual(world.issued.map(({ serialNumber }) => serialNumber));
  });

  test('takes over once, wherever the process is killed', async () => {
    const make = async (issuer = undefined as ClientWorld['cas']['issuer'] | undefined): Promise<ClientWorld> => {
      const world = issuer === undefined ? await ClientWorld.make() : new ClientWorld(issuer);
      world.lifetime = 14 * DAY;
      await world.step();
      world.changes = later;
      return world;
    };
    const whole = await make();
    whole.lives = 1e9;
    await whole.step('renew');
    for (let killedAt = 0; killedAt < 1e9 - whole.lives; killedAt++) {
      const world = await make(whole.cas.issuer);
      world.lives = killedAt;
      await world.step('renew');
      world.lives = Infinity;
      await world.until(START + 11.5 * DAY);
      expect(world.live?.version, `killed at ${killedAt}`).toBe(1);
      await world.until(START + 12.5 * DAY);
      world.assertWhole();
      expect([world.live?.version, world.issued.length]).toEqual([2, 2]);
    }
  });

  test('is installed if there is no other', async () => {
    const world = await ClientWorld.make();
    world.changes = { notBefore: START + 60_000 };
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    expect(world.live?.version).toBe(1);
  });
});

describe('a certificate that differs from the request', () => {
  test('with another subject or subjectAltName, or without a former purpose, is installed with a warning', async () => {
    const world = await ClientWorld.make();
    await world.step();
    expect(world.log.filter((line) => line.startsWith('warning'))).toEqual([]);
    world.changes = { subject: 'CN=other', extensions: serverOnly.with(2, subjectAltName(dns('other.example'))) };
    expect(await world.step('renew')).toMatchObject({ outcome: 'changed' });
    expect(world.log.filter((line) => line.startsWith('warning'))).toEqual([
      'warning: the CA issued the subject "CN=other", not "CN=web"',
      'warning: the CA issued the subjectAltName DNS:other.example, not DNS:web.example',
      'warning: the new certificate lacks the extended key usage clientAuth',
      'warning: the certificate cannot authenticate its own renewal: its extended key usage is serverAuth, without clientAuth',
    ]);
  });

  test.each([undefined, 'renew'] as const)('is not installed if it is a CA certificate (%s)', async (force) => {
    const world = await ClientWorld.make();
    if (force !== undefined) await world.step();
    const before = world.live?.version;
    world.changes = { extensions: [basicConstraints(true), keyUsage('digitalSignature', 'keyCertSign')] };
    expect((await world.step(force)).error).toMatchObject({
      code: 'ANSWER_INVALID',
      message: 'the certificate is a CA certificate, which was not requested',
    });
    expect(world.live?.version).toBe(before);
  });
});
