/**
 * The HSM logs the user out or drops the sessions under a load of enrollments. A module in front of SoftHSM2 triggers
 * this; the server sees SoftHSM2's own results.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import { requires } from '../support/requires.ts';
import { buildShim } from '../support/pkcs11-shim.ts';
import { softHsm, type SoftHsm } from '../support/softhsm.ts';
import { HsmUnderLoad } from './hsm-load.ts';
import { pause, until } from '../support/until.ts';

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

describe.skipIf(!requires('softhsm', 'pkcs11Shim'))('an HSM that is used once a day', () => {
  test.each([
    ['forgets its sessions and the login', 'idle'],
    ['ends the connection until its module is initialized again', 'stuck'],
  ])('%s: each day the first enrollment and the first readiness succeed', async (_, quirk) => {
    const hsm = softHsm();
    onTestFinished(() => hsm.remove());
    const pkcs11 = { module: buildShim(hsm), timeout: 60 };
    // A second is a day of this token.
    const server = await HsmUnderLoad.start(hsm, pkcs11, { SHIM: quirk, SHIM_IDLE: '1' });
    onTestFinished(() => server.estuary.stop());
    for (let day = 0; day < 3; day++) {
      await pause(1100);
      expect((await server.enroll()).status).toBe(200);
      await pause(1100);
      expect(await server.readiness()).toBe(200);
    }
    server.expectNoProblems();
  });
});

/** Longer in the nightly run. */
const SECONDS = Number(process.env['HSM_LOAD_SECONDS'] ?? 5);

describe.skipIf(!requires('softhsm', 'pkcs11Shim'))('an HSM that does all of this', () => {
  test(
    'drops sessions, refuses the ninth, and fails one signature in a hundred: only those requests get 500',
    { timeout: SECONDS * 1000 + 120_000 },
    async () => {
      const hsm = softHsm();
      onTestFinished(() => hsm.remove());
      const [order, log] = [hsm.file('order'), hsm.file('shim.log')];
      const quirks = { SHIM: 'idle,maxsess,failnth', SHIM_IDLE: '0.2', SHIM_MAX: '8', SHIM_NTH: '100' };
      const pkcs11 = { module: buildShim(hsm), max_sessions: 16, timeout: 60 };
      const server = await HsmUnderLoad.start(hsm, pkcs11, { ...quirks, SHIM_ORDER: order, SHIM_LOG: log });
      onTestFinished(() => server.estuary.stop());
      const child = server.childPid();
      const statuses = await server.under(async () => {
        for (const end = Date.now() + SECONDS * 1000; Date.now() < end;) {
          await pause(500);
          writeFileSync(`${order}.new`, 'C_SignInit C_CloseAllSessions\n');
          renameSync(`${order}.new`, order);
        }
      });
      const failed = statuses.filter((status) => status !== 200);
      const signatures = readFileSync(log, 'utf8').match(/C_Sign 0x6$/gm) ?? [];
      expect(new Set(failed)).toEqual(new Set(failed.length === 0 ? [] : [500]));
      expect(failed.length).toBeLessThanOrEqual(signatures.length);
      expect(statuses.length).toBeGreaterThan(SECONDS * 10);
      expect(server.childPid()).toBe(child);
      server.expectNoProblems();
      await server.expectConsistency();
    },
  );
});
