/** `server.workers` above 1 with a token: how often a wrong PIN is tried at the start. OpenSC's pkcs11-spy, between the server and SoftHSM2, counts. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { caSection, Estuary, hashOtpsCheaply, section } from '../support/estuary.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import { requires } from '../support/requires.ts';
import { SOFTHSM_MODULE, softHsm, type SoftHsm } from '../support/softhsm.ts';

/** Debian has it in the folder of the architecture. */
const SPY = readdirSync('/usr/lib')
  .map((folder) => join('/usr/lib', folder, 'pkcs11-spy.so'))
  .find((file) => existsSync(file));

describe.skipIf(!requires('softhsm'))('a wrong PIN at the start', () => {
  const hsms: SoftHsm[] = [];
  afterAll(() => hsms.forEach((hsm) => hsm.remove()));

  /** How often the token was asked to log in by a server with so many workers, which does not start. */
  async function logins(workers: number): Promise<number> {
    const hsm = softHsm();
    hsms.push(hsm);
    hsm.addToken('est');
    const output = hsm.file('spy.log');
    const env = { PKCS11SPY: SOFTHSM_MODULE, PKCS11SPY_OUTPUT: output, OTHER_PIN: '0000' };
    const options = withKeysInHsm(
      {
        env,
        configure: (config, dir) => {
          hashOtpsCheaply(config, dir);
          section(config, 'server')['workers'] = workers;
          Object.assign(section(caSection(config), 'pkcs11'), { module: SPY, pin_env: 'OTHER_PIN' });
        },
      },
      hsm,
    );
    await expect(Estuary.start(options)).rejects.toThrow(/CKR_PIN_INCORRECT/);
    return readFileSync(output, 'utf8').match(/^\d+: C_Login$/gm)?.length ?? 0;
  }

  test('is tried once, however many workers there are', async () => {
    expect(await logins(1)).toBe(1);
    expect(await logins(3)).toBe(1);
  });
});
