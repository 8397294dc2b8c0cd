/** How a client comes back: renewal after expiry, a device that the server rejects, and a password that an operator supplies. */
import { describe, expect, test } from 'vitest';
import { ClientError } from '../../src/client/client-error.ts';
import { healthOf, statusOf } from '../../src/client/status.ts';
import { ClientWorld, configOf, DAY, START } from '../support/client-world.ts';

const HOUR = 3_600_000;
const disabled = (): ClientError =>
  new ClientError('disabled', 'DEVICE_DISABLED', 'simplereenroll: 403 (device not registered)', { status: 403 });
const unauthenticated = (): ClientError =>
  new ClientError('unauthenticated', 'REFUSED', 'simplereenroll: 401', { status: 401 });

const operations = (world: ClientWorld): string[] => world.requests.map(({ operation }) => operation);

/** With a certificate that expired while the machine was off. */
async function expiredWorld(config: ClientWorld['config'] = configOf({})): Promise<ClientWorld> {
  const world = await ClientWorld.make();
  world.config = config;
  await world.step();
  world.now += 11 * DAY;
  return world;
}

describe('after the expiry', () => {
  test('the expired certificate authenticates its renewal if no unused password is available', async () => {
    const world = await expiredWorld();
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    expect(operations(world)).toEqual(['simpleenroll', 'simplereenroll']);
    expect(world.passwords).toEqual(['secret']);
  });

  test('an unused password comes first, and the expired certificate if the server rejects it', async () => {
    const world = await expiredWorld(configOf({ otp_reusable: true }));
    world.decide = () => (operations(world).at(-1) === 'simpleenroll' ? unauthenticated() : 'issue');
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    expect(operations(world)).toEqual(['simpleenroll', 'simpleenroll', 'simplereenroll']);
  });

  test('a renewal without a response is repeated first, with the same request', async () => {
    const world = await expiredWorld(configOf({ otp_reusable: true }));
    world.now -= 2 * DAY;
    world.decide = () => 'lose';
    await world.step();
    world.decide = () => 'issue';
    world.now += 2 * DAY;
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    const [, lost, repeated, ...more] = world.requests;
    expect([repeated?.operation, lost?.der, more]).toEqual(['simplereenroll', repeated?.der, []]);
  });

  test('if the server rejects it too, the message names the remedies, and a later password is used at once', async () => {
    const world = await expiredWorld();
    world.decide = unauthenticated;
    expect((await world.step()).error).toMatchObject({
      code: 'CREDENTIALS_MISSING',
      message: expect.stringMatching(
        /simplereenroll: 401; the certificate expired .*Put a new one-time password/,
      ) as unknown,
    });
    world.decide = () => 'issue';
    world.now += 1000;
    expect(await world.step()).toMatchObject({ outcome: 'failed' });
    world.otp = 'another';
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    expect(world.passwords).toEqual(['secret', 'another']);
  });
});

describe('a certificate that the server no longer knows', () => {
  const stateOf = (world: ClientWorld) => statusOf(world.config.certificate, world.disk, world.now).state;
  const window = { start: START + 6 * DAY, end: START + 7 * DAY, retryAfter: 3600 };

  test('is unknown to the server, if the server knew it before, until it knows it again', async () => {
    const world = await ClientWorld.make();
    world.suggest = () => 'unknown';
    await world.step();
    expect(stateOf(world)).toBe('valid');
    const days: readonly [ReturnType<ClientWorld['suggest']>, string][] = [
      [window, 'valid'],
      [undefined, 'valid'],
      ['unknown', 'unknown to the server'],
      [undefined, 'unknown to the server'],
      [window, 'valid'],
    ];
    for (const [day, [answer, state]] of days.entries()) {
      world.suggest = () => answer;
      await world.until(START + (day + 1) * 0.5 * DAY);
      expect(stateOf(world), `after ${JSON.stringify(answer)}`).toBe(state);
      const { status } = healthOf([statusOf(world.config.certificate, world.disk, world.now)], world.now) as {
        status: string;
      };
      expect(status).toBe(state === 'valid' ? 'ok' : 'failing');
    }
  });

  test.each([
    ['tlsv1 alert unknown ca: SSL alert number 48', 'unknown to the server'],
    ['ssl/tls alert certificate unknown: SSL alert number 46', 'unknown to the server'],
    ['sslv3 alert certificate revoked: SSL alert number 44', 'revoked'],
    ['read ECONNRESET', 'valid'],
  ])('is seen in a handshake for the renewal information: %s', async (message, state) => {
    const world = await ClientWorld.make();
    await world.step();
    world.suggest = () => {
      throw new ClientError('later', 'SERVER_UNREACHABLE', `GET renewal-info: ${message}`);
    };
    await world.until(START + DAY);
    expect(stateOf(world)).toBe(state);
    world.suggest = () => window;
    await world.until(START + 2 * DAY);
    expect(stateOf(world)).toBe('valid');
  });

  test.each([
    ['simplereenroll: 401 (client certificate revoked)', 'revoked'],
    ['tlsv1 alert certificate revoked: SSL alert number 44', 'revoked'],
    ['tlsv1 alert unknown ca: SSL alert number 48', 'unknown to the server'],
    ['simplereenroll: 401 (certificate signed by unknown authority)', 'unknown to the server'],
  ])('after %s, it is %s', async (message, state) => {
    const world = await ClientWorld.make();
    await world.step();
    world.decide = () => new ClientError('unauthenticated', 'REFUSED', message, { status: 401 });
    await world.step('renew');
    expect(stateOf(world)).toBe(state);
    world.decide = () => 'issue';
    await world.step('enroll');
    expect(stateOf(world)).toBe('valid');
  });
});

describe('a device that the server rejects', () => {
  async function disabledWorld(): Promise<ClientWorld> {
    const world = await ClientWorld.make();
    await world.step();
    world.decide = disabled;
    world.now += 7.5 * DAY;
    await world.step();
    return world;
  }

  test('keeps key and certificate, says so, and asks again after half a day to a day', async () => {
    const world = await disabledWorld();
    expect(world.log.at(-1)).toMatch(/device not registered\). An administrator must enable the device, or put a new/);
    await world.until(START + 9.9 * DAY);
    expect(operations(world).length - 1).toBe(4);
    expect(world.live?.version).toBe(1);
    world.assertWhole();
    const status = statusOf(world.config.certificate, world.disk, world.now);
    expect(status.state).toBe('disabled');
    expect(healthOf([status], world.now)).toMatchObject({ status: 'failing' });
  });

  test('renews once it is enabled', async () => {
    const world = await disabledWorld();
    world.decide = () => 'issue';
    await world.until(START + 9 * DAY);
    expect([operations(world).at(-1), world.live?.version]).toEqual(['simplereenroll', 2]);
    expect(statusOf(world.config.certificate, world.disk, world.now).state).toBe('valid');
  });

  test('enrolls at once with a password in its folder, and removes that file', async () => {
    const world = await disabledWorld();
    world.decide = () => 'issue';
    world.write('otp', 'fresh\n');
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    expect([operations(world).at(-1), world.passwords]).toEqual(['simpleenroll', ['secret', 'fresh']]);
    expect(world.text('otp')).toBeUndefined();
    // The former password counts as used as before.
    world.decide = disabled;
    await world.step('renew');
    await world.until(world.now + DAY);
    expect(world.passwords).toEqual(['secret', 'fresh']);
  });

  test('a hook that fails does not hide the rejection, so that a new password is used at once', async () => {
    const world = await ClientWorld.make();
    world.hook = () => {
      throw new ClientError('local', 'HOOK_FAILED', 'the hook failed');
    };
    await world.step();
    world.decide = disabled;
    world.now += 7.5 * DAY;
    await world.step();
    world.now += HOUR;
    await world.step();
    expect(statusOf(world.config.certificate, world.disk, world.now).state).toBe('disabled');
    world.decide = () => 'issue';
    world.write('otp', 'fresh\n');
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    expect(world.passwords).toEqual(['secret', 'fresh']);
  });

  test('a rejected password is not sent again before its time', async () => {
    const world = await disabledWorld();
    world.decide = unauthenticated;
    world.write('otp', 'wrong\n');
    await world.step();
    await world.until(world.now + HOUR / 6);
    expect(world.passwords.filter((password) => password === 'wrong').length).toBeLessThanOrEqual(2);
    expect(world.live?.version).toBe(1);
  });

  test('killed at each of its steps, recovery needs one certificate', async () => {
    const past = await disabledWorld();
    past.write('otp', 'fresh\n');
    const whole = past.copy();
    whole.lives = 1e9;
    await whole.step();
    for (let killedAt = 0; killedAt < 1e9 - whole.lives; killedAt++) {
      const world = past.copy();
      world.lives = killedAt;
      await world.step();
      world.assertWhole();
      world.lives = Infinity;
      await world.until(world.now + HOUR);
      world.assertWhole();
      expect([world.live?.version, world.issued.length], `killed at ${killedAt}`).toEqual([2, 2]);
      expect(world.text('otp')).toBeUndefined();
    }
  });
});
