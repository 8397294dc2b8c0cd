/** A test's Estuary with its CA keys in a SoftHSM2 instead of files; the certificates stay the same. */
import { join } from 'node:path';

import { caSection, section, type EstuaryOptions } from './estuary.ts';
import { PIN, SOFTHSM_MODULE, softHsm, type SoftHsm } from './softhsm.ts';

/**
 * The options with every CA of the file driver moved to the PKCS#11 driver.
 * @param more further keys of `[ca.pkcs11]`
 */
export function withKeysInHsm(
  options: EstuaryOptions,
  hsm: SoftHsm,
  more: Readonly<Record<string, string | number>> = {},
): EstuaryOptions {
  return {
    ...options,
    env: { ...options.env, ...hsm.env, TEST_HSM_PIN: PIN },
    configure(config, dir) {
      const cas = Array.isArray(config['ca']) ? config['ca'].length : 0;
      for (let index = 0; index < cas; index++) {
        const ca = caSection(config, index);
        if (ca['driver'] !== 'file') continue;
        const file = section(ca, 'file')['private_key'];
        if (typeof file !== 'string') throw new TypeError('a CA without a key file');
        const label = `ca ${index}`;
        hsm.importKey('est', join(dir, file), label, `0${index}`);
        delete ca['file'];
        ca['driver'] = 'pkcs11';
        ca['pkcs11'] = {
          module: SOFTHSM_MODULE,
          token_label: 'est',
          pin_env: 'TEST_HSM_PIN',
          key_label: label,
          ...more,
        };
      }
      options.configure?.(config, dir);
    },
  };
}

/** Set to `hsm` to run a file of black-box tests with the CA keys in SoftHSM2. */
export const CA_KEYS = 'ESTUARY_TEST_CA_KEYS';

/** The options as the environment of the tests wants them. */
export function withWantedKeys(options: EstuaryOptions, dir: string): EstuaryOptions {
  if (process.env[CA_KEYS] !== 'hsm') return options;
  const hsm = softHsm(dir);
  hsm.addToken('est');
  // Longer than the default, for a busy machine.
  return withKeysInHsm(options, hsm, { timeout: 60 });
}
