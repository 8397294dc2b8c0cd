/**
 * The HSM logs the user out or drops the sessions under a load of enrollments. A module in front of SoftHSM2 triggers
 * this; the server sees SoftHSM2's own results.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { SOFTHSM_MODULE, softHsm, type SoftHsm } from '../support/softhsm.ts';
import { HsmUnderLoad } from './hsm-load.ts';
import { until } from '../support/until.ts';

describe.skipIf(!requires('softhsm', 'cc'))('an HSM that loses sessions under a load of enrollments', () => {
  let hsm: SoftHsm;
  let server: HsmUnderLoad;
  let order: string;

  beforeAll(async () => {
    hsm = softHsm();
    order = hsm.file('order');
    const module = hsm.file('shim.so');
    const source = join(ROOT, 'test/support/pkcs11-shim.c');
    execFileSync('cc', ['-shared', '-fPIC', '-o', module, source, '-ldl'], { timeout: 60_000, stdio: 'pipe' });
    const env = { SHIM_MODULE: SOFTHSM_MODULE, SHIM_ORDER: order };
    server = await HsmUnderLoad.start(hsm, { module, max_sessions: 4, timeout: 6 }, env);
  });
  afterEach(() => server.expectNoProblems());
  afterAll(async () => {
    await server.estuary.stop();
    hsm.remove();
  });

  /** Lets the token do it at the next call, and waits until it has. */
  async function lose(call: string, deed: string): Promise<void> {
    const done = `${order}.done`;
    rmSync(done, { force: true });
    writeFileSync(`${order}.new`, `${call} ${deed}\n`);
    renameSync(`${order}.new`, order);
    await until(`${deed} at ${call}`, () => existsSync(done) && readFileSync(done, 'latin1').includes(' '));
    // The token's own word that it did it: CKR_OK.
    expect(readFileSync(done, 'latin1')).toBe(`${deed} 0`);
  }

  test.each([
    ['the user is logged out before a signature', 'C_SignInit', 'C_Logout'],
    ['the user is logged out between C_SignInit and C_Sign', 'C_Sign', 'C_Logout'],
    ['every session is lost before a signature', 'C_SignInit', 'C_CloseAllSessions'],
    ['every session is lost between C_SignInit and C_Sign', 'C_Sign', 'C_CloseAllSessions'],
  ])(
    '%s: 500 for what it hits, 503 until a new process has logged in, and then certificates',
    async (_, call, deed) => {
      const { pid } = server.estuary.server;
      const before = server.childPid();
      const statuses = await server.under(async (load) => {
        const from = load.statuses.length;
        await lose(call, deed);
        await until('a failed enrollment', () => load.statuses.slice(from).some((status) => status !== 200));
      });
      expect(statuses).toContain(500);
      await expect.poll(() => server.childPid()).not.toBe(before);
      expect(server.estuary.server.pid).toBe(pid);
      expect(await server.readiness()).toBe(200);
    },
  );

  test('afterwards: every certificate answered is recorded once, no serial twice, no OTP use lost', async () => {
    await server.expectConsistency();
  });
});
