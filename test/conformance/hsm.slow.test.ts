/**
 * The tests of enrollment, OCSP and CRLs also pass with HSM-held CA keys: they are the very same tests, on SoftHSM2. And such a key signs
 * the responses of full CMC.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { caSection, Estuary, section } from '../support/estuary.ts';
import { runAny } from '../support/command.ts';
import { exchange, inShort, issuedBy, requestBy, tcr } from '../support/cmc.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { CA_KEYS } from '../support/keys-in-hsm.ts';
import { opensslText } from '../support/openssl.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { PIN } from '../support/softhsm.ts';

const possible = requires('softhsm');
if (possible) {
  process.env[CA_KEYS] = 'hsm';
  // Their tests become this file's: every file has its own process, so the variable reaches no other.
  await import('./enrollment.test.ts');
  await import('./revocation-at-once.test.ts');
}

describe.skipIf(!possible)('a server with its CA keys in SoftHSM2', () => {
  let estuary: Estuary;
  beforeAll(async () => {
    estuary = await Estuary.start({
      configure: (_, dir) => {
        for (const name of ['issuing', 'lab']) rmSync(join(dir, `ca/${name}.key`));
      },
    });
  });
  afterAll(() => estuary.stop());

  test('issues certificates that OpenSSL accepts', async () => {
    const { json } = await estuary.admin('GET', '/admin/cas/devices');
    expect(json).toMatchObject({ driver: 'pkcs11', health: 'ok' });
    const { cert } = await estuary.enrolled(makeKey(), 'device-1', ['a.example']);
    const file = join(estuary.dir, 'leaf.pem');
    writeFileSync(file, cert);
    const chain = ['-CAfile', join(estuary.dir, 'ca/root.pem'), '-untrusted', join(estuary.dir, 'ca/issuing.pem')];
    expect(opensslText(['verify', '-x509_strict', '-purpose', 'sslclient', ...chain, file])).toContain('OK');
    expect(await estuary.outputSoFar()).not.toContain(PIN);
  });

  test('signs CRLs and the responses of full CMC, though no key is in any file', async () => {
    expect((await estuary.est('crls')).status).toBe(200);
    const device = await estuary.enrolled(makeKey());
    const request = requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
    // OpenSSL verifies the response up to the root.
    const reply = await exchange(estuary, request, device);
    expect([reply.status, ...inShort(reply), issuedBy(reply).length]).toEqual([200, 'success [1]', 1]);
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'a wrong PIN',
      { pin_env: 'WRONG_PIN' },
      'ca[devices].pkcs11.pin_env: token "est" refuses the PIN (CKR_PIN_INCORRECT)',
    ],
    [
      'a missing key',
      { key_label: 'nobody' },
      'ca[devices].pkcs11.key_label: token "est" has no private key labeled "nobody"',
    ],
    ['a missing token', { token_label: 'gone' }, 'ca[devices].pkcs11.token_label: there is no token "gone"'],
    [
      "another CA's key",
      { key_label: 'ca 1' },
      'ca[devices].pkcs11.key_label: the private key does not belong to the CA certificate',
    ],
  ])('--check refuses %s', async (_, change, message) => {
    const config = join(estuary.dir, 'est.toml');
    let before: TomlTable = {};
    estuary.reconfigure((toml) => {
      const table = section(caSection(toml), 'pkcs11');
      before = { ...table };
      Object.assign(table, change);
    });
    try {
      const env = { ...estuary.env, WRONG_PIN: '0000' };
      const { code, output } = await runAny(NODE, [SERVER, '--config', config, '--check'], { env });
      expect(output).toContain(`${config}: ${message}`);
      expect(code).toBe(2);
    } finally {
      estuary.reconfigure((toml) => void (caSection(toml)['pkcs11'] = before));
    }
  });
});
