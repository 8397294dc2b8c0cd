/** What a failing HSM costs the requests it hits, under load, and that it costs nothing else. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { requires } from '../support/requires.ts';
import { softHsm, type SoftHsm } from '../support/softhsm.ts';
import { HsmUnderLoad } from './hsm-load.ts';
import { pause, until } from '../support/until.ts';

describe.skipIf(!requires('softhsm'))('an HSM that fails under a load of enrollments', () => {
  let hsm: SoftHsm;
  let server: HsmUnderLoad;

  beforeAll(async () => {
    hsm = softHsm();
    server = await HsmUnderLoad.start(hsm, { max_sessions: 1, timeout: 20 });
  });
  afterEach(() => server.expectNoProblems());
  afterAll(async () => {
    await server.estuary.stop();
    hsm.remove();
  });

  test('its token vanishes and returns: 500 and 503 meanwhile, and signatures again without a restart', async () => {
    const { pid } = server.estuary.server;
    const statuses = await server.under(async (load) => {
      hsm.moveAway();
      try {
        const from = load.statuses.length;
        await until('503s', () => load.statuses.slice(from).filter((status) => status === 503).length >= 20);
        expect([await server.readiness(), await server.isHsmUp()]).toEqual([503, '0']);
        await pause(1000);
      } finally {
        hsm.moveBack();
      }
    });
    expect(statuses).toContain(500);
    expect(statuses).toContain(503);
    expect(server.estuary.server.pid).toBe(pid);
    // The other CA has a separate process without enrollments: its next attempt may come after the load.
    await expect.poll(async () => [await server.readiness(), await server.isHsmUp()]).toEqual([200, '1']);
  });

  test('its process is killed: the calls in flight fail, and another process takes over', async () => {
    const before = server.childPid();
    await server.under(async (load) => {
      process.kill(before, 'SIGKILL');
      await until('a failed enrollment', () => load.statuses.includes(503) || load.statuses.includes(500));
    });
    await expect.poll(() => server.childPid()).not.toBe(before);
  });

  test('its library hangs (SIGSTOP): the deadline ends it', async () => {
    const before = server.childPid();
    const statuses = await server.under(async (load) => {
      const from = load.statuses.length;
      process.kill(before, 'SIGSTOP');
      await until('a failed enrollment', () => load.statuses.slice(from).some((status) => status !== 200));
    });
    expect(statuses).toContain(500);
    await expect.poll(() => server.childPid()).not.toBe(before);
  });

  test('its sessions are exhausted: 503 with Retry-After for those beyond the queue, certificates for the rest', async () => {
    const pid = server.childPid();
    process.kill(pid, 'SIGSTOP');
    const statuses: number[] = [];
    const burst = Promise.all(Array.from({ length: 90 }, async () => statuses.push((await server.enroll()).status)));
    burst.catch(() => undefined);
    // One in the session and 64 behind it; the rest is refused at once, long before the deadline.
    await until('a rejected enrollment', () => statuses.includes(503));
    process.kill(pid, 'SIGCONT');
    await burst;
    expect(statuses.every((status) => status === 503 || status === 200)).toBe(true);
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0);
    expect((await server.enroll()).status).toBe(200);
  });

  test('afterwards: every certificate answered is recorded once, no serial twice, no OTP use lost', async () => {
    await server.expectConsistency();
  });
});
