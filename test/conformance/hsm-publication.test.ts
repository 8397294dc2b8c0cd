/** What is published for a CA whose key is in an HSM. They are the very same tests, on SoftHSM2. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Estuary } from '../support/estuary.ts';
import { CA_KEYS } from '../support/keys-in-hsm.ts';
import { requires } from '../support/requires.ts';

const possible = requires('softhsm');
if (possible) {
  process.env[CA_KEYS] = 'hsm';
  // Their tests become this file's: every file has its own process, so the variable reaches no other.
  await import('./publication.test.ts');
  await import('./crls.test.ts');
  await import('./revocation-at-once.test.ts');
}

describe.skipIf(!possible)('published for CAs with their keys in SoftHSM2', () => {
  test('CRLs are signed though no key is in any file', async () => {
    const estuary = await Estuary.start({
      configure: (_, dir) => {
        for (const name of ['issuing', 'lab']) rmSync(join(dir, `ca/${name}.key`));
      },
    });
    try {
      expect((await estuary.admin('GET', '/admin/cas/devices')).json).toMatchObject({ driver: 'pkcs11', health: 'ok' });
      expect((await estuary.est('crls')).status).toBe(200);
    } finally {
      await estuary.stop();
    }
  });
});
