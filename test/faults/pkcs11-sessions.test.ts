/**
 * The HSM logs the user out or drops the sessions under a load of enrollments. A module in front of SoftHSM2 triggers
 * this; the server sees SoftHSM2's own results.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { requires } from '../support/requires.ts';
import { buildShim } from '../support/pkcs11-shim.ts';
import { softHsm, type SoftHsm } from '../support/softhsm.ts';
import { HsmUnderLoad } from './hsm-load.ts';
import { until } from '../support/until.ts';

describe.skipIf(!requires('softhsm', 'pkcs11Shim'))('an HSM that loses sessions under a load of enrollments', () => {
  let hsm: SoftHsm;
  let server: HsmUnderLoad;
  let order: string;

  beforeAll(async () => {
    hsm = softHsm();
    order = hsm.file('order');
    const pkcs11 = { module: buildShim(hsm), max_sessions: 4, timeout: 60 };
    server = await HsmUnderLoad.start(hsm, pkcs11, { SHIM_ORDER: order });
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
  ])('%s: it is opened again in the same process, and no enrollment fails', async (_, call, deed) => {
    const before = server.childPid();
    const statuses = await server.under(async () => lose(call, deed));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(server.childPid()).toBe(before);
    expect(await server.readiness()).toBe(200);
  });

  test('afterwards: every certificate answered is recorded once, no serial twice, no OTP use lost', async () => {
    await server.expectConsistency();
  });
});
