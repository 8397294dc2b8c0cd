/** A token that locks at the third wrong PIN is never locked: nothing takes its final try. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { Estuary } from '../support/estuary.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import { buildShim } from '../support/pkcs11-shim.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { softHsm, type SoftHsm } from '../support/softhsm.ts';
import { until } from '../support/until.ts';

describe.skipIf(!requires('softhsm', 'pkcs11Shim'))('a PIN that is changed at the token', () => {
  let hsm: SoftHsm;
  let estuary: Estuary;

  beforeAll(async () => {
    hsm = softHsm();
    hsm.addToken('est');
    const env = { SHIM: 'tries', SHIM_TRIES: hsm.file('tries'), SHIM_LOG: hsm.file('shim.log') };
    estuary = await Estuary.start(withKeysInHsm({ env }, hsm, { module: buildShim(hsm), timeout: 60 }));
  });
  afterAll(async () => {
    await estuary.stop();
    hsm.remove();
  });

  const wrongTries = (): string => readFileSync(hsm.file('tries'), 'utf8');
  const children = (): number[] =>
    estuary.server
      .log()
      .flatMap(({ process: name, child }) => (name === 'PKCS11' && typeof child === 'number' ? [child] : []));

  test('two CAs whose processes restart, two reloads and two checks try it twice in all', async () => {
    expect(wrongTries()).toBe('0');
    await hsm.tool('est', '--change-pin', '--new-pin', 'another-pin');
    const running = children().slice(-2);
    expect(running).toHaveLength(2);
    for (const pid of running) process.kill(pid, 'SIGKILL');
    await until('both give up', () => estuary.server.log().filter(isGivenUp).length >= 2);
    expect(wrongTries()).toBe('1');
    await estuary.admin('POST', '/admin/reload').catch(() => undefined);
    await until('the reload tried it', () => wrongTries() === '2');
    for (let n = 0; n < 2; n++) await estuary.admin('POST', '/admin/reload').catch(() => undefined);
    for (let n = 0; n < 2; n++) {
      const command = [SERVER, '--check', '--config', join(estuary.dir, 'est.toml')];
      const { output } = await runAny(NODE, command, { env: estuary.env });
      expect(output).toMatch(/CKF_USER_PIN_FINAL_TRY/);
    }
    expect(wrongTries()).toBe('2');
  });
});

const isGivenUp = ({ msg }: { readonly msg?: unknown }): boolean =>
  String(msg).includes('process stays down until a reload');
