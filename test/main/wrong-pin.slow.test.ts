/** How often the start tries a wrong PIN. OpenSC's pkcs11-spy, between the server and SoftHSM2, counts. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import { untilLogged } from '../support/server-process.ts';
import { requires } from '../support/requires.ts';
import { SOFTHSM_MODULE, softHsm } from '../support/softhsm.ts';

/** Debian has it in the folder of the architecture. */
const SPY = readdirSync('/usr/lib')
  .map((folder) => join('/usr/lib', folder, 'pkcs11-spy.so'))
  .find((file) => existsSync(file));

describe.skipIf(!requires('softhsm'))('a wrong PIN at the start', () => {
  test('is tried once', async () => {
    const hsm = softHsm();
    onTestFinished(() => hsm.remove());
    hsm.addToken('est');
    const output = hsm.file('spy.log');
    const env = { PKCS11SPY: SOFTHSM_MODULE, PKCS11SPY_OUTPUT: output, OTHER_PIN: '0000' };
    const options = withKeysInHsm(
      {
        env,
        configure: (config) => {
          Object.assign(section(caSection(config), 'pkcs11'), { module: SPY, pin_env: 'OTHER_PIN' });
        },
      },
      hsm,
    );
    const estuary = await Estuary.start(options);
    onTestFinished(() => estuary.stop());
    const { detail } = await untilLogged(estuary.server, {
      msg: 'cannot use the hardware security module; not tried again before a reload',
    });
    expect(detail).toContain('CKR_PIN_INCORRECT');
    expect(readFileSync(output, 'utf8').match(/^\d+: C_Login$/gm)).toHaveLength(1);
  });
});
