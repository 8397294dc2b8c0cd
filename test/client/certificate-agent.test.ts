/** One certificate from enrollment through renewals, with the process killed at every step. */
import { describe, expect, test } from 'vitest';
import { ClientError } from '../../src/client/client-error.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { ClientWorld, configOf, DAY, START } from '../support/client-world.ts';

const later = (retryAfter?: number): ClientError =>
  new ClientError('later', 'SERVER_UNAVAILABLE', 'simpleenroll: 503', { retryAfter });
const HOUR = 3_600_000;

describe('the way of a certificate', () => {
  test('is enrolled, and renewed at two thirds of its life, give or take a twentieth, with a new key and the same names', async () => {
    const world = await ClientWorld.make();
    expect(await world.step()).toMatchObject({ outcome: 'changed' });
    const first = world.live?.certificate;
    await world.until(START + 9 * DAY);
    const [enroll, renew, ...more] = world.requests;
    expect([enroll?.operation, renew?.operation, more.length]).toEqual(['simpleenroll', 'simplereenroll', 0]);
    const share = ((renew?.time ?? 0) - START) / (10 * DAY);
    expect(share).toBeGreaterThan(0.61);
    expect(share).toBeLessThan(0.73);
    const second = world.live?.certificate;
    expect(second?.subject.der).toEqual(first?.subject.der);
    expect(second?.subjectAltNames).toEqual(first?.subjectAltNames);
    expect(second?.spki).not.toEqual(first?.spki);
    expect(world.hooks).toEqual(world.issued.map(({ serialNumber }) => serialNumber));
  });

  test('asks for renewal information after issuance and at each Retry-After, and renews within the suggested window', async () => {
    const world = await ClientWorld.make();
    const window = { start: START + 2 * DAY, end: START + 3 * DAY, retryAfter: 6 * 3600 };
    world.window = window;
    await world.step();
    expect(world.asked.map(({ time }) => time)).toEqual([START]);
    await world.until(START + 1.9 * DAY);
    expect(world.asked.length).toBeGreaterThanOrEqual(7);
    expect(world.requests).toHaveLength(1);
    // A campaign.
    world.window = { ...window, start: START + 1.8 * DAY, end: START + 1.95 * DAY };
    await world.until(START + 2.2 * DAY);
    world.window = undefined;
    await world.until(START + 4 * DAY);
    const [, renewed, ...more] = world.requests;
    expect([renewed?.operation, more.length]).toEqual(['simplereenroll', 0]);
    expect(renewed?.time).toBeGreaterThan(START + 1.9 * DAY);
    expect(renewed?.time).toBeLessThanOrEqual(START + 2.2 * DAY);
  });

  test('an invalid window, or none, leaves the schedule of the client', async () => {
    const world = await ClientWorld.make();
    world.window = { start: START + 50 * DAY, end: START + 60 * DAY, retryAfter: 0 };
    await world.step();
    await world.until(START + 9 * DAY);
    expect(((world.requests[1]?.time ?? 0) - START) / (10 * DAY)).toBeLessThan(0.73);
  });

  test('new_key = false keeps the key', async () => {
    const world = await ClientWorld.make();
    world.config = configOf({ new_key: false });
    await world.step();
    world.decide = () => 'issue';
    const [first] = world.issued.splice(0);
    await world.step('renew');
    expect(world.live?.certificate.spki).toEqual(first?.spki);
  });

  test('killed at each of its steps, a client goes on: no half-written file, no key without its certificate, no hook without a change, none missed', async () => {
    // How many steps an enrollment and a renewal take.
    const whole = await ClientWorld.make();
    whole.lives = 1e9;
    await whole.step();
    await whole.step('renew');
    const steps = 1e9 - whole.lives;
    expect(steps).toBeGreaterThan(60);
    for (let killedAt = 0; killedAt < steps; killedAt++) {
      const world = new ClientWorld(whole.cas.issuer);
      world.lives = killedAt;
      await world.step();
      if (world.lives >= 0) await world.step('renew');
      world.assertWhole();
      const seenBefore = world.live?.version ?? 0;
      world.lives = Infinity;
      await world.until(world.now + HOUR);
      world.assertWhole();
      expect(world.live?.version ?? 0, `killed at ${killedAt}`).toBeGreaterThanOrEqual(Math.max(1, seenBefore));
      // Whatever was issued is what is in use, or was: a request that was under way was sent again with its key.
      expect(new Set(world.requests.map(({ csr }) => csr.publicKey.spki.toString('hex'))).size).toBe(
        world.issued.length,
      );
      expect(world.live?.certificate.serialNumber).toBe(world.issued.at(-1)?.serialNumber);
      expect(new Set(world.hooks).size, `hooks, killed at ${killedAt}`).toBe(world.issued.length);
      expect(world.hooks.length).toBeLessThanOrEqual(world.issued.length + 1);
      const leftovers = [...world.entries.keys()].filter((path) => path.includes('.new-') || path.includes('/pending'));
      expect(leftovers).toEqual([]);
    }
  });

  test('an answer that was lost is asked for again with the same request', async () => {
    const world = await ClientWorld.make();
    world.decide = () => (world.requests.length < 3 ? 'lose' : 'issue');
    await world.until(START + HOUR);
    const [first, ...others] = world.requests;
    expect(others).toHaveLength(2);
    expect(others.every(({ der }) => der.equals(first?.der ?? Buffer.alloc(0)))).toBe(true);
    expect(world.issued).toHaveLength(1);
  });

  test('RFC 7030 §4.2.3: after 202 the same request is repeated, and not before Retry-After', async () => {
    const world = await ClientWorld.make();
    world.decide = () => (world.requests.length < 4 ? { retryAfter: 600 } : 'issue');
    expect(await world.step()).toMatchObject({ outcome: 'pending', next: START + 600_000 });
    world.now += 599_000;
    expect(await world.step()).toMatchObject({ outcome: 'pending' });
    expect(world.requests).toHaveLength(1);
    await world.until(START + HOUR);
    const times = world.requests.map(({ time }) => time);
    expect(times).toEqual([0, 600, 1200, 1800].map((seconds) => START + seconds * 1000));
    expect(new Set(world.requests.map(({ der }) => der.toString('hex'))).size).toBe(1);
    expect(world.live?.version).toBe(1);
  });

  test('RFC 7030 §4.2.3: with a channel binding, the request is made anew for the connection, with the same key', async () => {
    const world = await ClientWorld.make();
    world.attributes = [{ oid: OID.challengePassword }];
    world.decide = () => (world.requests.length < 2 ? { retryAfter: 5 } : 'issue');
    await world.until(START + HOUR);
    expect(world.requests.map(({ csr }) => csr.challengePassword)).toEqual(
      Array(2).fill(Buffer.from('binding').toString('base64')),
    );
    expect(world.issued).toHaveLength(1);
  });

  test('503: the delay starts at a short Retry-After and grows from there', async () => {
    const world = await ClientWorld.make();
    world.decide = () => later(2);
    await world.until(START + HOUR);
    const times = world.requests.slice(0, 6).map(({ time }) => (time - START) / 1000);
    expect(times).toEqual([0, 2, 5, 11, 23, 47]);
  });

  test('503: Retry-After counts, and without one the pauses grow', async () => {
    const world = await ClientWorld.make();
    world.decide = () => (world.requests.length === 1 ? later(900) : later());
    await world.until(START + 6 * HOUR);
    const pauses = world.requests.slice(1).map(({ time }, index) => (time - (world.requests[index]?.time ?? 0)) / 1000);
    expect(pauses[0]).toBe(900);
    expect(pauses.slice(1, 6)).toEqual([22.5, 45, 90, 180, 360]);
    expect(Math.max(...pauses.slice(1))).toBeLessThanOrEqual(3600);
  });

  test('a refused request is not sent again: the next one asks the CA anew what it wants', async () => {
    const world = await ClientWorld.make();
    world.decide = () =>
      world.requests.length === 1 ? new ClientError('refused', 'REFUSED', 'simpleenroll: 400') : 'issue';
    expect(await world.step()).toMatchObject({ outcome: 'failed' });
    world.attributes = [{ oid: OID.ed25519, values: [] }];
    await world.until(START + DAY);
    expect(world.requests.map(({ csr }) => csr.publicKey.keyType)).toEqual(['ec:P-256', 'ed25519']);
    expect(world.requests[1]?.time).toBeGreaterThan(START + 2 * 60_000);
  });

  test('a renewal that fails leaves what there is in place, and comes through before its end', async () => {
    const world = await ClientWorld.make();
    await world.step();
    world.decide = () => (world.now < START + 9.5 * DAY ? later() : 'issue');
    await world.until(START + 9.5 * DAY);
    world.assertWhole();
    expect([world.live?.version, world.hooks.length]).toEqual([1, 1]);
    await world.until(START + 9.9 * DAY);
    expect([world.live?.version, world.hooks.length]).toEqual([2, 2]);
  });

  test('after it expired, a certificate is replaced as the first was obtained', async () => {
    const world = await ClientWorld.make();
    world.config = configOf({ otp_reusable: true });
    await world.step();
    world.now += 11 * DAY;
    await world.step();
    expect(world.requests.map(({ operation }) => operation)).toEqual(['simpleenroll', 'simpleenroll']);
    expect(world.passwords).toEqual(['secret', 'secret']);
  });

  test('a hook that fails runs again until it ends well, and renewals do not wait for it', async () => {
    const world = await ClientWorld.make();
    let runs = 0;
    world.hook = () => {
      runs += 1;
      if (runs < 4) throw new ClientError('local', 'HOOK_FAILED', '"hook" ended with 1');
    };
    expect((await world.step()).error?.code).toBe('HOOK_FAILED');
    await world.until(START + HOUR);
    expect([runs, world.hooks.length, world.live?.version]).toEqual([4, 1, 1]);
    await world.until(START + 2 * HOUR);
    expect(runs).toBe(4);
  });

  test('a clock that stands before the certificate, or was never set, is waited for', async () => {
    const world = await ClientWorld.make();
    await world.step();
    world.now = Date.UTC(1970, 0, 1);
    expect(await world.step()).toMatchObject({ outcome: 'failed', error: { code: 'CLOCK_WRONG' }, next: 60_000 });
    world.now = START - DAY;
    expect((await world.step()).error?.code).toBe('CLOCK_WRONG');
    expect(world.requests).toHaveLength(1);
    world.now = START + HOUR;
    expect(await world.step()).toMatchObject({ outcome: 'valid' });
  });

  test('old versions go, but for the two before', async () => {
    const world = await ClientWorld.make();
    await world.until(START + 90 * DAY);
    const versions = [...world.entries.keys()]
      .filter((path) => /\/versions\/\d+$/.test(path))
      .map((path) => Number(path.split('/').at(-1)));
    const live = world.live?.version ?? 0;
    expect(live).toBeGreaterThan(10);
    expect(versions.sort((a, b) => a - b)).toEqual([live - 2, live - 1, live]);
    expect(world.hooks).toEqual(world.issued.map(({ serialNumber }) => serialNumber));
  });
});
