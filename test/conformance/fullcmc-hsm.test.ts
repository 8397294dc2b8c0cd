/** Full CMC with an HSM-held CA key, which signs the responses too. They are the very same tests, on SoftHSM2. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Estuary } from '../support/estuary.ts';
import { CA_KEYS } from '../support/keys-in-hsm.ts';
import { requires } from '../support/requires.ts';

const possible = requires('softhsm');
if (possible) {
  process.env[CA_KEYS] = 'hsm';
  // Its tests become this file's: every file has its own process, so the variable reaches no other.
  await import('./fullcmc.test.ts');
}

describe.skipIf(!possible)('a server with its CA keys in SoftHSM2', () => {
  let server: Estuary;
  beforeAll(async () => {
    server = await Estuary.start();
  });
  afterAll(() => server.stop());

  test('has them there', async () => {
    const { json } = await server.admin('GET', '/admin/cas/devices');
    expect(json).toMatchObject({ driver: 'pkcs11', health: 'ok' });
  });
});
