/** Tokens as they are: a module in front of SoftHSM2 behaves as other people's modules do, one quirk at a time. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { forgetRejectedPins } from '../../../src/ca/pkcs11/logins.ts';
import { Pkcs11Signer, type Pkcs11SignerOptions } from '../../../src/ca/pkcs11/pkcs11-signer.ts';
import { parsePublicKey } from '../../../src/pki/x509/public-key.ts';
import { parseSignatureAlgorithm, verifySignature } from '../../../src/pki/x509/signature-algorithms.ts';
import { openssl } from '../../support/openssl.ts';
import { buildShim } from '../../support/pkcs11-shim.ts';
import { requires } from '../../support/requires.ts';
import { PIN, softHsm, type SoftHsm } from '../../support/softhsm.ts';
import { pidOf } from '../../support/spawned.ts';
import { pause, until } from '../../support/until.ts';

const KEYS = [
  ['ec:P-256', 'ec256', 'a1'],
  ['ec:P-384', 'ec384', 'a2'],
  ['rsa:2048', 'rsa', 'a3'],
] as const;

describe.skipIf(!requires('softhsm', 'pkcs11Shim'))('a PKCS #11 module with', () => {
  let hsm: SoftHsm;
  let module: string;
  let slot: string | undefined;
  let explicit: string;
  const opened: Pkcs11Signer[] = [];
  const printed: string[] = [];
  const spki = new Map<string, Buffer>();

  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

  async function open(
    quirks: string,
    options: Partial<Pkcs11SignerOptions> = {},
    env: Readonly<Record<string, string>> = {},
  ): Promise<Pkcs11Signer> {
    const signer = new Pkcs11Signer({
      module,
      token_label: 'est',
      key_label: 'ec256',
      pin: PIN,
      max_sessions: 8,
      timeout: 60,
      env: { ...hsm.env, SHIM: quirks, SHIM_PIN: PIN, SHIM_LOG: hsm.file('shim.log'), SHIM_EXPLICIT: explicit, ...env },
      retryAfter: 7,
      log,
      onOutput: (line) => void printed.push(line),
      minBackoffMs: 20,
      maxBackoffMs: 200,
      ...options,
    });
    opened.push(signer);
    await signer.start();
    return signer;
  }

  const expected = (key: string): Buffer => {
    const found = spki.get(key);
    if (found === undefined) throw new TypeError(`no key ${key}`);
    return found;
  };

  async function expectToSign(signer: Pkcs11Signer, times = 1): Promise<void> {
    const algorithm = parseSignatureAlgorithm(signer.signatureAlgorithm);
    await Promise.all(
      Array.from({ length: times }, async (_, n) => {
        const tbs = Buffer.from(`certificate ${n}`);
        expect(await verifySignature(algorithm, parsePublicKey(signer.spki), tbs, await signer.sign(tbs))).toBe(true);
      }),
    );
  }

  const logged = (call: RegExp): number => (readFileSync(hsm.file('shim.log'), 'utf8').match(call) ?? []).length;

  beforeAll(async () => {
    hsm = softHsm();
    module = buildShim(hsm);
    explicit = hsm.file('explicit.der');
    const parameters = ['-name', 'prime256v1', '-param_enc', 'explicit', '-outform', 'DER', '-out', explicit];
    openssl(['ecparam', ...parameters]);
    hsm.addToken('est');
    hsm.addToken('other');
    // Either token may be in the first slot.
    await hsm.addKey('other', 'ec:P-256', 'big', 'b1');
    await hsm.addKey('est', 'ec:P-256', 'big', 'b1');
    const names: unknown = await open('', { token_label: 'none' }).catch(String);
    slot = /"est" \(slot (\d+)/.exec(String(names))?.[1];
    for (const [type, label, id] of KEYS) {
      await hsm.addKey('est', type, label, id);
      const signer = await open('', { key_label: label });
      spki.set(label, signer.spki);
      await signer.close();
    }
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((signer) => signer.close()));
    forgetRejectedPins();
    printed.length = 0;
    writeFileSync(hsm.file('shim.log'), '');
  });
  afterAll(() => hsm.remove());

  describe('unusual formats', () => {
    /** Those of a case concern different calls, so that none of them hides another. `isKey`: one concerns the public key. */
    interface Format {
      readonly quirks: string;
      readonly key?: string;
      readonly isKey?: true;
    }
    const FORMATS: readonly (readonly [names: string, format: Format])[] = [
      ['no locking (CKR_CANT_LOCK): one call at a time', { quirks: 'cantlock' }],
      [
        'a slot with an unknown token; NUL instead of blanks after labels',
        { quirks: 'badslot,nullabel,nullkey', isKey: true },
      ],
      ['a slot that cannot be read; NUL and blanks; no CKA_SENSITIVE', { quirks: 'badslotinfo,nullabel2,nosens' }],
      ['a removed token; a mechanism without details; read-write sessions only', { quirks: 'gone,mechinfo,rwonly' }],
      ['ECDSA only with its own hash; sessions that cannot be closed', { quirks: 'onlyecdsasha,closefails' }],
      ['a bare EC point; the name of a curve as text', { quirks: 'rawpoint,curvename', isKey: true }],
      ['a compressed EC point; explicit EC parameters', { quirks: 'comppoint,explicit', isKey: true }],
      ['an EC point in a BIT STRING; ECDSA signatures in DER', { quirks: 'bitpoint,dersig', isKey: true }],
      ['no EC parameters', { quirks: 'noparams', isKey: true }],
      ['no CKA_ID of the private key', { quirks: 'noid', key: 'ec384', isKey: true }],
      [
        'the RSA exponent only in the public key; RSA only without a hash',
        { quirks: 'nopubexp,norsasha', key: 'rsa', isKey: true },
      ],
      [
        'zero octets before RSA numbers; a listed mechanism that it rejects',
        { quirks: 'zeroexp,zeromod,shalie', key: 'rsa', isKey: true },
      ],
      ['RSA without padding only', { quirks: 'onlyx509', key: 'rsa' }],
      ['CKA_ALWAYS_AUTHENTICATE', { quirks: 'alwaysauth' }],
      ['slots that appear at the second look; a label with more after its end', { quirks: 'lateslots,nulljunk' }],
      [
        'no list of mechanisms; a login with CKU_CONTEXT_SPECIFIC that it does not know',
        { quirks: 'nomechs,alwaysauthsaid,noctx' },
      ],
      ['handles that are valid only in the session that found them', { quirks: 'ownhandles' }],
      ['a hash that always fails', { quirks: 'badhash', key: 'rsa' }],
      ['a hash that makes wrong signatures', { quirks: 'badhashsig', key: 'rsa' }],
      ['no search for labels or IDs', { quirks: 'nosearch', key: 'ec384' }],
    ];
    test.each(FORMATS)('%s', async (_names, { quirks: quirk, key = 'ec256', isKey }) => {
      // Without a certificate, so that the public key comes from the token.
      const signer = await open(quirk, { key_label: key });
      expect(signer.spki).toEqual(expected(key));
      await expectToSign(signer, 5);
      expect(await signer.health()).toEqual({ health: 'ok' });
      await signer.close();
      if (isKey) await expectToSign(await open(quirk, { key_label: key, expectedSpki: expected(key) }));
    });

    test('64-bit slot IDs: all bits count, and a text may name one', async () => {
      const big = { token_label: undefined, key_label: 'big' };
      await expectToSign(await open('bigslot', { ...big, slot: '2305843009213693953' }));
      await expectToSign(await open('bigslot', { ...big, slot: '0x2000000000000001' }));
      await expect(open('bigslot', { ...big, slot: 1 })).rejects.toThrow(/^there is no slot 1; /);
    });

    test('two tokens of one label: the message lists them, and a serial number tells them apart', async () => {
      hsm.addToken('twins');
      hsm.addToken('twins');
      const said = String(await open('', { token_label: 'twins' }).catch((error: unknown) => error));
      expect(said).toContain(
        '2 slots hold a token "twins"; use slot, or uri with a serial: the module shows "twins" (',
      );
      const serial = /serial number "([0-9a-f]+)"/.exec(said)?.[1];
      await expect(open('', { token_label: 'twins', serial })).rejects.toThrow(/ has no private key /);
    });

    test('a module that wants arguments: the message names the key for them', async () => {
      await expect(open('needreserved')).rejects.toThrow(/: CKR_ARGUMENTS_BAD; it may need library_parameters$/);
    });

    test('no mechanism for the key: says so', async () => {
      await expect(open('onlypss', { key_label: 'rsa' })).rejects.toThrow(
        'the token has no signature mechanism for a rsa:2048 key',
      );
    });

    test('RSA with a hash for short data only: longer data is hashed here', async () => {
      const signer = await open('shortdata', { key_label: 'rsa' });
      const tbs = Buffer.alloc(100_000);
      const algorithm = parseSignatureAlgorithm(signer.signatureAlgorithm);
      expect(await verifySignature(algorithm, parsePublicKey(signer.spki), tbs, await signer.sign(tbs))).toBe(true);
      await expectToSign(signer, 5);
    });

    test('wrong signatures: the key is not used', async () => {
      await expect(open('badsig', { expectedSpki: expected('ec256') })).rejects.toMatchObject({
        code: 'TOKEN_KEY_MISMATCH',
      });
    });
  });

  describe('neighbors', () => {
    test('a second key of the same label: the one of the certificate is used, and stays in use', async () => {
      await hsm.addKey('other', 'ec:P-256', 'twin', '01');
      const first = await open('', { token_label: 'other', key_label: 'twin' });
      const expectedSpki = first.spki;
      await hsm.addKey('other', 'ec:P-256', 'twin', '02');
      await hsm.addKey('other', 'ec:P-384', 'twin', '03');
      expect(await first.health()).toEqual({ health: 'ok' });
      await expectToSign(first);
      const signer = await open('', { token_label: 'other', key_label: 'twin', expectedSpki });
      expect(signer.spki).toEqual(expectedSpki);
      await expectToSign(signer);
    });

    test('a second pair of the same CKA_ID: the one of the certificate is used', async () => {
      await hsm.addKey('other', 'ec:P-256', 'one', '11');
      const one = await open('', { token_label: 'other', key_label: 'one' });
      await hsm.addKey('other', 'ec:P-256', 'two', '11');
      for (const reference of [{ key_label: 'one' }, { key_label: undefined, key_id: '11' }]) {
        const options = { token_label: 'other', ...reference, expectedSpki: one.spki };
        await expectToSign(await open('', options));
      }
      // Without a certificate, a signature tells which public key it is.
      const two = await open('', { token_label: 'other', key_label: 'two' });
      expect(two.spki).not.toEqual(one.spki);
      await expectToSign(two);
    });
  });

  describe('its own idea of a login', () => {
    test('CKR_USER_ALREADY_LOGGED_IN is a success', async () => {
      await expectToSign(await open('alreadyin'), 3);
    });

    test('a protected path gets no PIN, and none has to be configured', async () => {
      await expectToSign(await open('protauth'));
      await expectToSign(await open('protauth', { pin: undefined }));
      expect(logged(/pin given/g)).toBe(0);
    });

    test('a token that needs no login may refuse one', async () => {
      await expectToSign(await open('nologin'));
    });

    test('a key that needs CKU_CONTEXT_SPECIFIC without saying so', async () => {
      await expectToSign(await open('hiddenauth'), 3);
    });

    test('a PIN with CKU_CONTEXT_SPECIFIC that is rejected is not tried again', async () => {
      const signer = await open('alwaysauth').catch((error: unknown) => error);
      expect(signer).toBeInstanceOf(Pkcs11Signer);
      await expect(open('alwaysauth', {}, { SHIM_PIN: 'another' })).rejects.toMatchObject({ permanent: true });
      await expect(open('alwaysauth', { key_label: 'rsa' }, { SHIM_PIN: 'another' })).rejects.toThrow(
        /is not tried again before a reload$/,
      );
      expect(logged(/C_Login context 0xa0/g)).toBe(1);
    });

    test('a PIN with CKU_CONTEXT_SPECIFIC that is changed: eight signatures at once try the old one once', async () => {
      const quirks = hsm.file('quirks');
      writeFileSync(quirks, 'alwaysauth');
      const signer = await open('', {}, { SHIM_FILE: quirks });
      writeFileSync(quirks, 'alwaysauth,newpin');
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => signer.sign(Buffer.from('x'))));
      expect(results.every(({ status }) => status === 'rejected')).toBe(true);
      expect(logged(/C_Login context 0xa0/g)).toBe(1);
    });

    test.each([
      ['CKR_VENDOR_DEFINED 0x80000163', '0x80000163'],
      ['CKR_GENERAL_ERROR', '5'],
      ['CKR_FUNCTION_FAILED', '6'],
    ])('%s at the login: it is tried once before a reload, by all CAs', async (code, rv) => {
      const env = { SHIM_RV: rv };
      await expect(open('vendorpin', {}, env)).rejects.toMatchObject({
        permanent: true,
        message: `token "est" refuses the login (${code})`,
      });
      for (const other of [{ key_label: 'rsa' }, { token_label: undefined, slot }])
        await expect(open('vendorpin', other, env)).rejects.toThrow(/is not tried again before a reload$/);
      expect(logged(/C_Login/g)).toBe(1);
      // Another token with the same PIN is not concerned.
      await expect(open('vendorpin', { token_label: 'other' }, env)).rejects.toThrow(/refuses the login/);
      expect(logged(/C_Login/g)).toBe(2);
      forgetRejectedPins();
      await expect(open('vendorpin', {}, env)).rejects.toThrow(/refuses the login/);
      expect(logged(/C_Login/g)).toBe(3);
    });

    test.each([
      ['CKR_TOKEN_NOT_PRESENT', '0xe0'],
      ['CKR_DEVICE_REMOVED', '0x32'],
      ['CKR_SESSION_CLOSED', '0xb0'],
    ])('%s at the login says nothing about the PIN', async (code, rv) => {
      const failure: unknown = await open('vendorpin', {}, { SHIM_RV: rv }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code, permanent: false });
      await expectToSign(await open(''));
    });

    test('two CAs that start at once with a rejected PIN: one login', async () => {
      const both = [open('', { pin: 'wrong' }), open('', { pin: 'wrong', key_label: 'rsa' })];
      for (const result of await Promise.allSettled(both))
        expect(result).toMatchObject({ status: 'rejected', reason: { code: 'TOKEN_PIN', permanent: true } });
      expect(logged(/C_Login/g)).toBe(1);
    });

    test('the final try is not taken, and the message says what to do', async () => {
      await expect(open('finaltry')).rejects.toMatchObject({
        permanent: true,
        message:
          'token "est" allows one more try of its PIN (CKF_USER_PIN_FINAL_TRY), which Estuary does not use: ' +
          'log in with another tool, or reset the PIN, and then reload',
      });
      expect(logged(/C_Login/g)).toBe(0);
    });
  });

  describe('its own idea of sessions', () => {
    test('idle sessions that it drops are opened again: no signature fails, and the process stays', async () => {
      const signer = await open('idle', {}, { SHIM_IDLE: '0.2' });
      const { pid } = signer;
      await expectToSign(signer, 8);
      for (let n = 0; n < 3; n++) {
        await pause(300);
        await expectToSign(signer, n === 1 ? 8 : 1);
        await pause(300);
        expect(await signer.health()).toEqual({ health: 'ok' });
      }
      expect(signer.pid).toBe(pid);
    });

    test.each(['CKR_DEVICE_ERROR 0x30', 'CKR_GENERAL_ERROR 5'])(
      '%s of the signature after a pause, as of a connection that a firewall has dropped: it is tried again',
      async (failure) => {
        const env = { SHIM_IDLE: '1', SHIM_RV: failure.split(' ')[1] ?? '' };
        const signer = await open('idlesign', {}, env);
        const { pid } = signer;
        await expectToSign(signer, 8);
        await pause(1100);
        await expectToSign(signer, 8);
        expect(logged(/C_Sign 0x[1-9a-f]/g)).toBeGreaterThan(0);
        expect(signer.pid).toBe(pid);
      },
    );

    test.each(['CKR_DEVICE_ERROR 0x30', 'CKR_SESSION_HANDLE_INVALID 0xb3', 'CKR_CRYPTOKI_NOT_INITIALIZED 0x190'])(
      '%s after a pause, until the module is initialized again: the signatures wait for a new process',
      async (failure) => {
        const signer = await open('stuck', {}, { SHIM_IDLE: '1', SHIM_RV: failure.split(' ')[1] ?? '' });
        const { pid } = signer;
        await expectToSign(signer);
        await pause(1100);
        await expectToSign(signer, 8);
        expect(signer.pid).not.toBe(pid);
      },
    );

    test.each(['CKR_DEVICE_MEMORY 0x31', 'CKR_FUNCTION_FAILED 6', 'CKR_VENDOR_DEFINED 0x80000117'])(
      'sessions that it refuses with %s: requests wait',
      async (failure) => {
        const quirks = hsm.file('quirks');
        writeFileSync(quirks, '');
        const env = { SHIM_FILE: quirks, SHIM_MAX: '2', SHIM_COUNT_RV: failure.split(' ')[1] ?? '' };
        const signer = await open('', {}, env);
        const { pid } = signer;
        writeFileSync(quirks, 'maxsess');
        await expectToSign(signer, 24);
        expect(signer.pid).toBe(pid);
      },
    );

    test.each(['CKR_FUNCTION_FAILED 6', 'CKR_DEVICE_ERROR 0x30', 'CKR_VENDOR_DEFINED 0x80000001'])(
      '%s of one signature fails that signature only',
      async (failure) => {
        const env = { SHIM_NTH: '10', SHIM_RV: failure.split(' ')[1] ?? '' };
        const signer = await open('failnth', {}, env);
        const { pid } = signer;
        const results = await Promise.allSettled(Array.from({ length: 40 }, () => signer.sign(Buffer.from('x'))));
        const failed = results.filter(({ status }) => status === 'rejected');
        expect(failed.length).toBeGreaterThan(0);
        expect(failed.length).toBeLessThanOrEqual(logged(/C_Sign 0x[1-9a-f]/g));
        for (const result of failed) expect(result).toMatchObject({ reason: { status: 500, code: 'PKCS11_FAILED' } });
        expect(signer.pid).toBe(pid);
      },
    );

    test.each([1, 3])('%i sessions at most (ulMaxSessionCount): requests wait for them', async (most) => {
      const signer = await open('maxsess', {}, { SHIM_MAX: String(most) });
      expect(signer.concurrency).toBe(most);
      await expectToSign(signer, 24);
      expect(logged(/C_OpenSession 0xb1/g)).toBe(0);
    });

    test('sessions that it refuses without saying so: requests wait', async () => {
      // The quirk counts the sessions, and the file hides its limit at the start.
      const quirks = hsm.file('quirks');
      writeFileSync(quirks, '');
      const signer = await open('', {}, { SHIM_FILE: quirks, SHIM_MAX: '2' });
      writeFileSync(quirks, 'maxsess');
      await expectToSign(signer, 24);
      expect(signer.concurrency).toBe(2);
    });

    test('a token that is removed while it signs: 500, and a new process signs', async () => {
      const signer = await open('diesat', {}, { SHIM_NTH: '3' });
      const { pid } = signer;
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => signer.sign(Buffer.from('x'))));
      expect(results.some(({ status }) => status === 'rejected')).toBe(true);
      await until('a signature', () => signer.sign(Buffer.from('x')).catch(() => undefined));
      expect(signer.pid).not.toBe(pid);
    });
  });

  describe('side effects', () => {
    test('what it prints to stderr is passed on, without the PIN', async () => {
      await open('stderr,stdout', { pin: PIN }, { SHIM_LINES: '2' });
      await until('both lines', () => printed.length === 2);
      expect(printed).toEqual(['vendor module: line 2', 'vendor module: line 1']);
      await expect(open('stderr', { pin: 'module' })).rejects.toThrow(/refuses the PIN/);
      await until('a line', () => printed.length === 3);
      expect(printed[2]).toBe('vendor [secret]: line 1');
    });

    test.each(['fork', 'finhang', 'fincrash'])('%s: it is closed soon', async (quirk) => {
      const signer = await open(quirk, {}, { SHIM_FORK_S: '600' });
      const pid = pidOf(signer);
      await expectToSign(signer);
      await signer.close();
      expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
    });
  });
});
