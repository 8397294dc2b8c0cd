/** ML-DSA keys in a token of PKCS#11 3.2: NSS's, the one at hand that has them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ML_DSA } from '../../src/pki/x509/key-pair.ts';
import { certificateOf } from '../support/cmc.ts';
import { run, runAny, runText } from '../support/command.ts';
import { certificatePem, Estuary, section } from '../support/estuary.ts';
import { NSS_LIBRARIES, OPENSSL_35, requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { PIN, SOFTHSM_MODULE, softHsm } from '../support/softhsm.ts';

describe.skipIf(!requires('nss', 'openssl35', 'softhsm'))('CA keys of ML-DSA in a token', () => {
  let estuary: Estuary;
  const at = (file: string): string => join(estuary.dir, file);
  const label = (level: string): string => `token-${level}`;
  const openssl = (...args: readonly string[]): Promise<string> => runText(OPENSSL_35, args);
  const estuaryCommand = (...args: readonly string[]): Promise<{ code: number | null; output: string }> =>
    runAny(NODE, [SERVER, ...args], { env: estuary.env });

  beforeAll(async () => {
    estuary = await Estuary.start({
      algorithm: 'ml-dsa-65',
      listeners: ['est', 'admin', 'publication'],
      env: { LD_LIBRARY_PATH: NSS_LIBRARIES, TEST_HSM_PIN: PIN },
      configure: (config) => {
        const publication = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
        Object.assign(section(config, 'publication'), publication);
      },
    });
    mkdirSync(at('nss'));
    writeFileSync(at('nss.pin'), PIN);
    await run('certutil', ['-N', '-d', `sql:${at('nss')}`, '-f', at('nss.pin')]);
    estuary.reconfigure((config) => {
      const cas = config['ca'];
      if (!Array.isArray(cas)) throw new TypeError('no CAs');
      for (const level of ['44', '65', '87'])
        cas.push({
          label: label(level),
          driver: 'pkcs11',
          certificate: `${label(level)}.pem`,
          pkcs11: {
            module: join(NSS_LIBRARIES, 'libsoftokn3.so'),
            library_parameters: `configDir='sql:${at('nss')}' certPrefix='' keyPrefix='' secmod='' flags= `,
            token_label: 'NSS Certificate DB',
            pin_env: 'TEST_HSM_PIN',
            key_label: label(level),
          },
          profile: { key_types: [`ml-dsa:${level}`] },
        });
    });
    for (const level of ['44', '65', '87']) {
      const names = ['--ca', label(level), '--key-type', `ml-dsa:${level}`];
      const { code, output } = await estuaryCommand('ca', 'init', '--config', at('est.toml'), ...names);
      expect([code, output]).toEqual([
        0,
        expect.stringContaining(`Created a key of the type ml-dsa:${level} in the token`),
      ]);
    }
    await estuary.server.stop();
    await estuary.restart();
  });
  afterAll(() => estuary.stop());

  test.each(ML_DSA)('$name: certificates, CRL and OCSP that OpenSSL verifies', async ({ name }) => {
    const level = name.slice('ML-DSA-'.length);
    const ca = label(level);
    const [key, csr, leaf] = [at(`${ca}.key`), at(`${ca}.csr`), at(`${ca}-leaf.pem`)] as const;
    await openssl('req', '-new', '-newkey', name, '-nodes', '-keyout', key, '-out', csr, '-subj', '/CN=device-1');
    const { token } = await estuary.otp({ ca });
    const answer = await estuary.enroll(readFileSync(csr), { path: `${ca}/simpleenroll`, password: token });
    expect(answer.status, answer.text).toBe(200);
    const cert = certificatePem(answer);
    writeFileSync(leaf, cert);
    expect((await estuary.admin('GET', `/admin/cas/${ca}`)).json).toMatchObject({ driver: 'pkcs11', health: 'ok' });
    await openssl('verify', '-x509_strict', '-CAfile', at(`${ca}.pem`), leaf);
    expect(await openssl('x509', '-in', leaf, '-noout', '-text')).toContain(`Signature Algorithm: ${name}`);

    const { serialNumber } = certificateOf({ cert, key: '' });
    expect((await estuary.admin('POST', `/admin/certificates/${serialNumber}/revoke?ca=${ca}`)).status).toBe(200);
    const url = `http://127.0.0.1:${estuary.server.port('publication')}`;
    const ocsp = ['-issuer', at(`${ca}.pem`), '-cert', leaf, '-url', `${url}/ocsp/${ca}`, '-CAfile', at(`${ca}.pem`)];
    expect((await runAny(OPENSSL_35, ['ocsp', ...ocsp])).output).toMatch(/Response verify OK[^]*: revoked/);
    const crl = await fetch(`${url}/crl/${ca}.crl`, { signal: AbortSignal.timeout(60_000) });
    writeFileSync(at(`${ca}.crl`), Buffer.from(await crl.arrayBuffer()));
    const args = ['crl', '-inform', 'DER', '-in', at(`${ca}.crl`), '-noout', '-CAfile', at(`${ca}.pem`)];
    expect((await runAny(OPENSSL_35, [...args, '-verify'])).output).toContain('verify OK');
  });

  test('a token whose library has no ML-DSA says so, and keeps nothing', async () => {
    const hsm = softHsm(estuary.dir);
    hsm.addToken('old');
    const pkcs11 = `module = "${SOFTHSM_MODULE}"\ntoken_label = "old"\npin_env = "TEST_HSM_PIN"\nkey_label = "new"`;
    const before = readFileSync(at('est.toml'), 'utf8');
    const table = `[[ca]]\nlabel = "old"\ndriver = "pkcs11"\ncertificate = "old.pem"\n[ca.pkcs11]\n${pkcs11}\n`;
    writeFileSync(at('old.toml'), `${before}\n${table}`);
    const args = ['ca', 'init', '--config', at('old.toml'), '--ca', 'old', '--key-type', 'ml-dsa:65'];
    const { code, output } = await runAny(NODE, [SERVER, ...args], { env: { ...estuary.env, ...hsm.env } });
    expect(code).not.toBe(0);
    expect(output).toContain('token "old" cannot create ml-dsa:65 keys: its PKCS#11 library does not support them');
    expect(await hsm.tool('old', '--list-objects')).not.toContain('new');
  });
});
