/**
 * `ca init` against SoftHSM2, and CAs of driver = "pkcs11" made by it, checked by OpenSSL.
 *
 * Longer than other files: the commands build on each other's CAs.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { createPkcs11Ca, pkcs11Driver } from '../../../src/ca/pkcs11/index.ts';
import type { LocalCa } from '../../../src/ca/local/index.ts';
import { loadConfigOnly } from '../../../src/config/load.ts';
import { parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { configFolder, toml } from '../../config/support.ts';
import type { ConfigFolder } from '../../config/support.ts';
import { keyPair, pkcs8Pem, spkiDer } from '../../support/keys.ts';
import { openssl, opensslText } from '../../support/openssl.ts';
import { buildShim } from '../../support/pkcs11-shim.ts';
import { requires } from '../../support/requires.ts';
import { PIN, SOFTHSM_MODULE, softHsm } from '../../support/softhsm.ts';
import type { SoftHsm } from '../../support/softhsm.ts';
import { TOKEN_KEY_TYPES } from '../../../src/ca/pkcs11/wire.ts';
import { caMaterial } from '../../support/own-ca.ts';
import { estuary as command } from '../../support/local-command.ts';

/** Whole seconds, and after the certificates that OpenSSL dates by the real clock. */
const NOW = Math.floor(Date.now() / 1000) * 1000 + 3_600_000;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** The [[ca]] tables of a configuration, with the default one in the token. */
const tokenCa = (
  label: string,
  lines: readonly string[],
  pin = 'pin_file = "hsm.pin"',
  module = SOFTHSM_MODULE,
): string =>
  [
    '[[ca]]',
    `label = "${label}"`,
    'default = true',
    'driver = "pkcs11"',
    `certificate = "${label}.pem"`,
    ...(label === 'sub' ? [`chain = "${label}-root.pem"`] : []),
    '[ca.pkcs11]',
    `module = "${module}"`,
    'token_label = "est"',
    pin,
    ...lines,
    '',
  ].join('\n');

describe.skipIf(!requires('softhsm'))('ca init', () => {
  let hsm: SoftHsm;
  let folder: ConfigFolder;
  beforeAll(async () => {
    hsm = softHsm();
    hsm.addToken('est');
    folder = await configFolder();
    await folder.write('hsm.pin', `${PIN}\n`);
  });
  afterAll(() => {
    hsm.remove();
    folder.remove();
  });

  async function configure(ca: string): Promise<string> {
    await folder.write('est.toml', toml('', { ca }));
    return `${folder.path}/est.toml`;
  }

  /** For the module. */
  const moduleEnv: Record<string, string> = {};

  const init = (...args: string[]) =>
    command(['ca', 'init', ...args], { env: { ...hsm.env, ...moduleEnv, HSM_PIN: PIN }, now: () => NOW });

  async function open(label: string): Promise<LocalCa> {
    const { config } = await loadConfigOnly(`${folder.path}/est.toml`, { HSM_PIN: PIN });
    const ca = config.ca.find((table) => table.label === label);
    if (ca?.driver !== 'pkcs11') throw new Error('not the CA');
    const made = createPkcs11Ca(await caMaterial(pkcs11Driver, ca), {
      env: hsm.env,
      retryAfter: 1,
      log: silent,
      now: () => NOW,
    });
    await made.start();
    return made;
  }

  async function issue(ca: LocalCa): Promise<string> {
    const prepared = await ca.prepare({
      request_id: 'r1',
      subject: parseDistinguishedName('CN=device 1'),
      subjectAltNames: [],
      spki: spkiDer(keyPair('ec:P-256', 'device')),
      csr: undefined,
    });
    const result = await prepared.issue();
    if (result.status !== 'issued') throw new Error('pending');
    return encodePem('CERTIFICATE', result.certificate);
  }

  const verify = (leaf: string, root: string, untrusted: readonly string[] = []): string => {
    writeFileSync(hsm.file('leaf.pem'), leaf);
    return opensslText([
      ...['verify', '-x509_strict', '-attime', String(NOW / 1000 + 60), '-purpose', 'sslclient', '-CAfile', root],
      ...untrusted.flatMap((file) => ['-untrusted', file]),
      hsm.file('leaf.pem'),
    ]);
  };

  test.runIf(requires('pkcs11Shim')).each(['0x13', '6', '0x80000001'])(
    'a token that refuses CKA_DECRYPT false, as TPMs do with %s: the key is created without it, and it is named',
    async (rv) => {
      const label = `tpm-${rv}`;
      Object.assign(moduleEnv, { SHIM: 'nodecrypt,stderr,fork', SHIM_RV: rv, SHIM_FORK_S: '600' });
      const ca = tokenCa(label, [`key_label = "${label}"`], undefined, buildShim(hsm));
      const done = await init('--config', await configure(ca), '--ca', label, '--key-type', 'ec:P-256');
      expect(done.code).toBe(0);
      expect(done.err).toContain('warning: the token refused CKA_DECRYPT false and CKA_UNWRAP false');
      expect(done.err).toContain(`the PKCS #11 library of "${label}" printed: vendor module: line 1`);
      const listed = await hsm.tool('est', '--list-objects', '--type', 'privkey');
      expect(listed).toMatch(
        new RegExp(`label: +${label}[^]*?Access: +sensitive, always sensitive, never extractable`),
      );
    },
  );

  test.runIf(requires('pkcs11Shim')).each([
    ['chooses the ID, and wants to know the type', 'noids,needkeytype', /label "([^"]+)", id \n/],
    ['shortens the ID', 'shortid', /label "([^"]+)", id [0-9a-f]{4}\n/],
  ])('a token that %s: the key is created and used, and the command prints its ID', async (_, quirks, printed) => {
    const label = quirks.replace(',', '-');
    Object.assign(moduleEnv, { SHIM: quirks, SHIM_RV: '0x13' });
    const ca = tokenCa(label, [`key_label = "${label}"`], undefined, buildShim(hsm));
    const done = await init('--config', await configure(ca), '--ca', label, '--key-type', 'ec:P-256');
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(done.out).toMatch(printed);
  });

  test.each(['ec:P-256', 'ec:P-384', 'rsa:2048', 'rsa:3072'])(
    'a root with a key of %s: OpenSSL accepts it and what the CA then issues',
    async (type) => {
      const label = type.replace(':', '-').toLowerCase();
      const config = await configure(tokenCa(label, [`key_label = "key of ${label}"`]));
      const subject = `CN=Root ${type.replace(':', ' ')},O=Example`;
      const done = await init(
        '--config',
        config,
        '--ca',
        label,
        '--key-type',
        type,
        '--subject',
        subject,
        '--days',
        '100',
      );
      expect(done).toMatchObject({ code: 0, err: '' });
      expect(done.out).toContain(subject);

      const root = `${folder.path}/${label}.pem`;
      expect(
        opensslText(['verify', '-x509_strict', '-attime', String(NOW / 1000 + 60), '-CAfile', root, root]),
      ).toMatch(/OK/);
      const [certificate] = parsePemCertificates(readFileSync(root, 'latin1'));
      expect(certificate).toMatchObject({ isCa: true, notBefore: new Date(NOW) });
      expect(certificate?.notAfter).toEqual(new Date(NOW + 100 * 86_400_000 - 1000));
      expect(certificate?.publicKey.keyType).toBe(type);

      const objects = await hsm.tool('est', '--list-objects', '--type', 'privkey', '--label', `key of ${label}`);
      expect(objects).toMatch(/Access: +sensitive, always sensitive, never extractable, local/);
      expect(objects).toMatch(/Usage: +sign\n/);

      const ca = await open(label);
      try {
        expect(verify(await issue(ca), root)).toMatch(/OK/);
      } finally {
        await ca.close();
      }
    },
  );

  test('a subordinate: the CA above certifies the request, and OpenSSL accepts the chain', async () => {
    const config = await configure(tokenCa('sub', ['key_id = "0a0b"'], 'pin_env = "HSM_PIN"'));
    const csr = hsm.file('sub.csr');
    const done = await init('--config', config, '--ca', 'sub', '--csr', csr, '--subject', 'CN=Sub CA');
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(opensslText(['req', '-verify', '-noout', '-text', '-in', csr])).toMatch(
      /Subject: CN = Sub CA[^]*CA:TRUE[^]*Certificate Sign, CRL Sign/,
    );
    expect(existsSync(`${folder.path}/sub.pem`)).toBe(false);

    const rootKey = hsm.file('root.key');
    const root = `${folder.path}/sub-root.pem`;
    writeFileSync(rootKey, pkcs8Pem(keyPair('ec:P-256', 'root')), { mode: 0o600 });
    const usage = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign'];
    openssl(['req', '-x509', '-new', '-key', rootKey, '-subj', '/CN=Above', '-days', '3650', ...usage, '-out', root]);
    const signed = [
      'x509',
      '-req',
      '-in',
      csr,
      '-CA',
      root,
      '-CAkey',
      rootKey,
      '-days',
      '3000',
      '-copy_extensions',
      'copy',
    ];
    const extensions = hsm.file('sub.ext');
    writeFileSync(extensions, 'authorityKeyIdentifier=keyid\n');
    openssl([...signed, '-extfile', extensions, '-out', `${folder.path}/sub.pem`]);

    const ca = await open('sub');
    try {
      expect(verify(await issue(ca), root, [`${folder.path}/sub.pem`])).toMatch(/OK/);
      expect(ca.chain()).toHaveLength(2);
    } finally {
      await ca.close();
    }
    // Renewing it takes a request of the same key while its certificate is in use.
    const again = hsm.file('again.csr');
    expect(await init('--config', config, '--ca', 'sub', '--csr', again, '--use-existing-key')).toMatchObject({
      code: 0,
    });
    const keyOf = (file: string): string => opensslText(['req', '-in', file, '-noout', '-pubkey']);
    expect(keyOf(again)).toBe(keyOf(csr));
  });

  test('overwrites neither a certificate nor a request nor a key', async () => {
    const config = await configure(tokenCa('twice', ['key_label = "twice"']));
    expect((await init('--config', config, '--ca', 'twice')).code).toBe(0);
    const file = `${folder.path}/twice.pem`;
    const before = readFileSync(file);
    const again = await init('--config', config, '--ca', 'twice');
    expect(again.code).toBe(1);
    expect(again.err).toContain('already exists');
    expect(readFileSync(file)).toEqual(before);

    await folder.write('twice.pem.moved', before);
    await folder.write('taken.csr', 'mine');
    const taken = await init(
      '--config',
      config,
      '--ca',
      'twice',
      '--csr',
      `${folder.path}/taken.csr`,
      '--use-existing-key',
    );
    expect(taken).toMatchObject({ code: 1 });
    expect(readFileSync(`${folder.path}/taken.csr`, 'utf8')).toBe('mine');

    const other = await configure(tokenCa('other', ['key_label = "twice"']));
    const refused = await init('--config', other, '--ca', 'other');
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toContain('token "est" already has a key labeled "twice"');
    expect(refused.err).toContain('--use-existing-key');
    expect(existsSync(`${folder.path}/other.pem`)).toBe(false);
    expect(await init('--config', other, '--ca', 'other', '--use-existing-key')).toMatchObject({ code: 0 });
    expect(statSync(`${folder.path}/other.pem`).size).toBeGreaterThan(0);
  });

  test.each<[string, string[], RegExp]>([
    ['no configuration', ['--ca', 'x'], /--config FILE and --ca LABEL are missing/],
    ['no CA', ['--config', 'CONFIG'], /--config FILE and --ca LABEL are missing/],
    ['an unknown CA', ['--config', 'CONFIG', '--ca', 'y'], /has no CA "y" \(it has "x"\)/],
    [
      'an unknown key type',
      ['--config', 'CONFIG', '--ca', 'x', '--key-type', 'ec:P-192'],
      /--key-type "ec:P-192" is unknown \(ec:P-256,/,
    ],
    ['an unknown option', ['--config', 'CONFIG', '--ca', 'x', '--force'], /--force/],
    ['no days', ['--config', 'CONFIG', '--ca', 'x', '--days', '0'], /--days/],
    [
      'days with a request',
      ['--config', 'CONFIG', '--ca', 'x', '--days', '5', '--csr', 'f'],
      /--days applies to a root/,
    ],
    ['a broken name', ['--config', 'CONFIG', '--ca', 'x', '--subject', 'nonsense'], /--subject/],
    ['an empty name', ['--config', 'CONFIG', '--ca', 'x', '--subject', ''], /--subject/],
    ['a missing file', ['--config', '/nowhere/est.toml', '--ca', 'x'], /cannot be read/],
  ])('refuses a command line with %s: exit code 2', async (_, args, message) => {
    const config = await configure(tokenCa('x', ['key_label = "x"']));
    const done = await init(...args.map((arg) => (arg === 'CONFIG' ? config : arg)));
    expect(done).toMatchObject({ code: 2, out: '' });
    expect(done.err).toMatch(message);
  });

  test('a token without ML-DSA makes no such key: exit code 1, and nothing is made', async () => {
    const config = await configure(tokenCa('pq', ['key_label = "pq"']));
    const done = await init('--config', config, '--ca', 'pq', '--key-type', 'ml-dsa:65');
    expect(done).toMatchObject({ code: 1, out: '' });
    expect(done.err).toContain('token "est" cannot create ml-dsa:65 keys: its PKCS#11 library does not support them');
    expect(existsSync(`${folder.path}/pq.pem`)).toBe(false);
  });

  describe('a check of such a CA says which key is wrong', () => {
    test.each<[string, string[], string, string, string]>([
      ['a wrong PIN', ['key_label = "twice"'], 'pin_env = "BAD"', 'pin_env', 'token "est" refuses the PIN'],
      [
        'a missing key',
        ['key_label = "nobody"'],
        'pin_env = "HSM_PIN"',
        'key_label',
        'token "est" has no private key labeled "nobody"',
      ],
      [
        'a missing id',
        ['key_id = "beef"'],
        'pin_env = "HSM_PIN"',
        'key_id',
        'token "est" has no private key with the id beef',
      ],
      [
        'the key of another CA',
        ['key_label = "key of ec-p-256"'],
        'pin_env = "HSM_PIN"',
        'key_label',
        'the private key does not belong to the CA certificate',
      ],
    ])('%s', async (_, lines, pin, key, message) => {
      await configure(tokenCa('twice', lines, pin));
      const { config } = await loadConfigOnly(`${folder.path}/est.toml`, { HSM_PIN: PIN, BAD: '0000' });
      const [ca] = config.ca;
      if (ca?.driver !== 'pkcs11') throw new Error('not the CA');
      const context = { env: hsm.env, retryAfter: 1, log: silent, now: () => NOW };
      const problems = await pkcs11Driver.startProblems?.(await caMaterial(pkcs11Driver, ca), 'ca[0]', context);
      expect(problems).toEqual([
        expect.objectContaining({ key: `ca[0].pkcs11.${key}`, message: expect.stringContaining(message) as string }),
      ]);
    });
  });

  test('--help tells what it does', async () => {
    expect(await init('--help')).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('--key-type TYPE') as string,
    });
    for (const type of TOKEN_KEY_TYPES) expect((await init('--help')).out).toContain(type);
  });
});
