import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { Pkcs11Signer } from '../../../src/ca/pkcs11/pkcs11-signer.ts';
import type { Pkcs11SignerOptions } from '../../../src/ca/pkcs11/pkcs11-signer.ts';
import { parsePublicKey } from '../../../src/pki/x509/public-key.ts';
import { parseSignatureAlgorithm, verifySignature } from '../../../src/pki/x509/signature-algorithms.ts';
import { SigningLimiter } from '../../../src/publication/ocsp-responder.ts';
import { runText } from '../../support/command.ts';
import { keyPair, spkiDer } from '../../support/keys.ts';
import { openssl, opensslText } from '../../support/openssl.ts';
import { requires } from '../../support/requires.ts';
import { PIN, SOFTHSM_MODULE, TOKEN_KEYS, softHsm } from '../../support/softhsm.ts';
import type { SoftHsm, TokenKeyType } from '../../support/softhsm.ts';
import { pause, until } from '../../support/until.ts';
import { pidOf } from '../../support/spawned.ts';

const TYPES = Object.keys(TOKEN_KEYS) as TokenKeyType[];
const label = (type: TokenKeyType): string => `key ${type}`;
const id = (type: TokenKeyType): string => `a${String(TYPES.indexOf(type))}`;

describe.skipIf(!requires('softhsm'))('a key in SoftHSM2', () => {
  let hsm: SoftHsm;
  const warnings: string[] = [];
  const log = {
    info: () => undefined,
    warn: (_: object, message: string) => void warnings.push(message),
    error: () => undefined,
  };
  const opened: Pkcs11Signer[] = [];

  async function open(options: Partial<Pkcs11SignerOptions> = {}): Promise<Pkcs11Signer> {
    const key = 'key_label' in options || 'key_id' in options ? {} : { key_label: label('ec:P-256') };
    const where = 'slot' in options ? {} : { token_label: 'est' };
    const signer = new Pkcs11Signer({
      module: SOFTHSM_MODULE,
      pin: PIN,
      max_sessions: 4,
      timeout: 60,
      env: hsm.env,
      retryAfter: 7,
      log,
      minBackoffMs: 20,
      maxBackoffMs: 200,
      ...where,
      ...key,
      ...options,
    });
    await signer.start();
    opened.push(signer);
    return signer;
  }

  beforeAll(async () => {
    hsm = softHsm();
    hsm.addToken('est');
    hsm.addToken('other');
    for (const type of TYPES) await hsm.addKey('est', type, label(type), id(type));
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((signer) => signer.close()));
    warnings.length = 0;
  });
  afterAll(() => hsm.remove());

  async function isValid(signer: Pkcs11Signer, tbs: Buffer, signature: Buffer): Promise<boolean> {
    const algorithm = parseSignatureAlgorithm(signer.signatureAlgorithm);
    return verifySignature(algorithm, parsePublicKey(signer.spki), tbs, signature);
  }

  test.each(TYPES)('%s, by label: OpenSSL accepts its signatures with its public key', async (type) => {
    const signer = await open({ key_label: label(type) });
    expect(parsePublicKey(signer.spki).keyType).toBe(type);
    const [spki, data, signed] = [hsm.file('spki.der'), hsm.file('data'), hsm.file('signature')];
    writeFileSync(spki, signer.spki);
    const hash = type === 'ec:P-384' ? '-sha384' : '-sha256';
    for (let length = 0; length < 600; length += 99) {
      const tbs = Buffer.alloc(length, 'x');
      writeFileSync(data, tbs);
      writeFileSync(signed, await signer.sign(tbs));
      const verify = ['dgst', hash, '-verify', spki, '-keyform', 'DER', '-signature', signed, data];
      expect(opensslText(verify)).toContain('Verified OK');
    }
    expect(warnings).toEqual([]);
  });

  test.each(TYPES)('%s, by id', async (type) => {
    const signer = await open({ key_id: id(type).toUpperCase() });
    expect(parsePublicKey(signer.spki).keyType).toBe(type);
  });

  test('by slot number', async () => {
    const slots = await runText('softhsm2-util', ['--show-slots'], { env: hsm.env });
    const slot = /^Slot (\d+)(?:(?!^Slot)[^])*?Label: +est *$/m.exec(slots)?.[1];
    const signer = await open({ slot: Number(slot) });
    expect(await signer.health()).toEqual({ health: 'ok' });
  });

  test('many signatures at once use a session each, and every one verifies', async () => {
    const signer = await open({ max_sessions: 3 });
    const all = await Promise.all(
      Array.from({ length: 150 }, async (_, i) => {
        const tbs = Buffer.from(`certificate ${i}`);
        return isValid(signer, tbs, await signer.sign(tbs));
      }),
    );
    expect(all.every((valid) => valid)).toBe(true);
  });

  test('a certificate waits behind no more OCSP responses than their share of the sessions', async () => {
    expect((await open({ max_sessions: 4 })).concurrency).toBe(4);
    const signer = await open({ max_sessions: 1 });
    const limiter = new SigningLimiter(signer.concurrency);
    let responses = 0;
    const flood = Array.from({ length: 60 }, async () => {
      await limiter.shared(() => signer.sign(Buffer.from('a response')));
      responses += 1;
    });
    await signer.sign(Buffer.from('a certificate'));
    expect(responses).toBeLessThanOrEqual(2);
    await Promise.all(flood);
    expect(responses).toBe(60);
  });

  test('sessions and queue exhausted: 503 with Retry-After, and the rest is signed', async () => {
    const signer = await open({ max_sessions: 1 });
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => signer.sign(Buffer.from('x'))));
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(100 - 65);
    for (const { reason } of refused) expect(reason).toMatchObject({ status: 503, code: 'PKCS11_BUSY', retryAfter: 7 });
    expect((await signer.sign(Buffer.from('again'))).length).toBeGreaterThan(60);
  });

  test('a token that is not there for a moment when it starts is waited for: SoftHSM empties its file before it writes it', async () => {
    const folder = hsm.file('tokens');
    const files = readdirSync(folder).map((token) => join(folder, token, 'token.object'));
    const contents = files.map((file) => readFileSync(file));
    for (const file of files) truncateSync(file);
    const started = open();
    const early = await Promise.race([started.catch((error: unknown) => error), pause(700).then(() => 'waits')]);
    files.forEach((file, n) => writeFileSync(file, contents[n] ?? ''));
    expect(early).toBe('waits');
    expect((await (await started).sign(Buffer.from('x'))).length).toBeGreaterThan(60);
  });

  describe('refuses to start', () => {
    test.each<[string, Partial<Pkcs11SignerOptions>, string, RegExp]>([
      ['a wrong PIN', { pin: '9999' }, 'TOKEN_PIN', /token "est" refuses the PIN \(CKR_PIN_INCORRECT\)/],
      ['no PIN', { pin: undefined }, 'TOKEN_PIN', /token "est" requires a PIN: set pin_file or pin_env/],
      ['an empty PIN, which means no login', { pin: '' }, 'TOKEN_KEY', /no private key .*; it shows no private key/],
      [
        'a missing token, with those that are there',
        { token_label: 'elsewhere' },
        'TOKEN_SLOT',
        /there is no token "elsewhere"; the module shows ("(est|other)" \(slot \d+, serial number "[0-9a-f]+"\)(, )?){2}$/,
      ],
      ['a missing slot', { slot: 4711 }, 'TOKEN_SLOT', /there is no slot 4711/],
      [
        'a missing label, with the keys that are there',
        { key_label: 'nobody' },
        'TOKEN_KEY',
        /no private key labeled "nobody"; it has ("key [^"]+" \(id a\d\)(, )?){4}/,
      ],
      ['a missing id', { key_id: 'ffff' }, 'TOKEN_KEY', /no private key with the id ffff/],
      ['a key in another token', { token_label: 'other' }, 'TOKEN_KEY', /token "other" has no private key/],
      ['a missing module', { module: '/nowhere/lib.so' }, 'TOKEN_MODULE', /cannot use the module \/nowhere\/lib\.so/],
      ['an invalid module', { module: '/etc/passwd' }, 'TOKEN_MODULE', /cannot use the module/],
      ['no token directory', { env: { SOFTHSM2_CONF: '/nowhere' } }, 'TOKEN_', /module|token/],
    ])('%s', async (_, options, code, message) => {
      const failure: unknown = await open(options).catch((error: unknown) => error);
      expect(failure).toMatchObject({ message: expect.stringMatching(message) as string });
      expect((failure as { code: string }).code).toContain(code);
      expect((failure as Error).message).not.toContain('9999');
    });

    test('a key that is not the CA certificate’s', async () => {
      await expect(open({ expectedSpki: spkiDer(keyPair('ec:P-256')) })).rejects.toMatchObject({
        code: 'TOKEN_KEY_MISMATCH',
        message: 'the private key does not belong to the CA certificate',
      });
    });

    test('a label that two keys have, if no certificate says which', async () => {
      await hsm.addKey('other', 'ec:P-256', 'twin', '01');
      await hsm.addKey('other', 'ec:P-256', 'twin', '02');
      await expect(open({ token_label: 'other', key_label: 'twin' })).rejects.toMatchObject({
        code: 'TOKEN_KEY',
        message: expect.stringMatching(
          /^token "other" has 2 private keys labeled "twin"; use key_id: "twin" \(id 0[12]\), "twin" \(id 0[12]\)$/,
        ) as string,
      });
      await open({ token_label: 'other', key_id: '02' });
    });
  });

  describe('without its public half in the token', () => {
    beforeAll(async () => {
      await hsm.addKey('other', 'ec:P-256', 'half', 'b1');
      await hsm.tool('other', '--read-object', '--type', 'pubkey', '--id', 'b1', '--output-file', hsm.file('half.der'));
      await hsm.tool('other', '--delete-object', '--type', 'pubkey', '--id', 'b1');
    });
    const half = { token_label: 'other', key_label: 'half' };

    test('the CA certificate says which key it is, and a signature proves it', async () => {
      const expectedSpki = openssl([
        'pkey',
        '-pubin',
        '-inform',
        'DER',
        '-in',
        hsm.file('half.der'),
        '-pubout',
        '-outform',
        'DER',
      ]);
      const signer = await open({ ...half, expectedSpki });
      expect(signer.spki).toEqual(expectedSpki);
    });

    test('a certificate of another key is found out by that signature', async () => {
      const expectedSpki = spkiDer(keyPair('ec:P-256'));
      await expect(open({ ...half, expectedSpki })).rejects.toMatchObject({ code: 'TOKEN_KEY_MISMATCH' });
    });

    test('and without a certificate the public key is unknown', async () => {
      await expect(open(half)).rejects.toMatchObject({ code: 'TOKEN_KEY' });
    });
  });

  test('a key that can leave the token is used with a warning', async () => {
    await hsm.tool(
      'other',
      ...['--keypairgen', '--key-type', 'EC:prime256v1', '--label', 'loose', '--id', 'c1'],
      '--extractable',
    );
    await open({ token_label: 'other', key_label: 'loose' });
    expect(warnings.join()).toMatch(/extractable/);
    expect(warnings.join()).not.toContain(PIN);
  });

  describe('in trouble', () => {
    async function recovered(signer: Pkcs11Signer): Promise<void> {
      const data = Buffer.from('tbs');
      const signature = await until('the signer signs again', () => signer.sign(data).catch(() => undefined));
      expect(await isValid(signer, data, signature)).toBe(true);
    }

    test('a token that vanishes: 500, then 503; it returns: signatures again', async () => {
      const signer = await open();
      hsm.moveAway();
      try {
        await expect(signer.sign(Buffer.from('x'))).rejects.toMatchObject({ status: 500, code: 'PKCS11_FAILED' });
        await expect(signer.sign(Buffer.from('x'))).rejects.toMatchObject({ status: 503, retryAfter: 7 });
        expect(await signer.health()).toMatchObject({ health: 'down' });
      } finally {
        hsm.moveBack();
      }
      await recovered(signer);
      expect(await signer.health()).toEqual({ health: 'ok' });
    });

    test('a token that vanishes unnoticed is found missing by the health report, and again when it returns', async () => {
      const signer = await open();
      hsm.moveAway();
      try {
        expect(await signer.health()).toMatchObject({ health: 'down' });
      } finally {
        hsm.moveBack();
      }
      await recovered(signer);
    });

    test('a killed process costs its calls only', async () => {
      const signer = await open();
      process.kill(pidOf(signer), 'SIGKILL');
      await expect(signer.sign(Buffer.from('x'))).rejects.toMatchObject({ code: 'PKCS11_FAILED' });
      await recovered(signer);
    });

    test('a hung process is ended at the deadline', async () => {
      const signer = await open({ timeout: 5 });
      process.kill(pidOf(signer), 'SIGSTOP');
      await expect(signer.sign(Buffer.from('x'))).rejects.toMatchObject({ status: 500, code: 'PKCS11_TIMEOUT' });
      await recovered(signer);
    });

    test('a PIN that changed is tried once, not in a loop', async () => {
      hsm.addToken('repinned');
      await hsm.addKey('repinned', 'ec:P-256', 'k', '01');
      const signer = await open({ token_label: 'repinned', key_label: 'k' });
      await hsm.tool('repinned', '--change-pin', '--new-pin', '4321');
      process.kill(pidOf(signer), 'SIGKILL');
      await expect(signer.sign(Buffer.from('x'))).rejects.toMatchObject({ code: 'PKCS11_FAILED' });
      await until('the signer reports the PIN', async () => (await signer.health()).detail?.includes('PIN'));
      expect(signer.pid).toBeUndefined();
      expect((await signer.health()).detail).toContain('refuses the PIN (CKR_PIN_INCORRECT)');
      await expect(signer.sign(Buffer.from('x'))).rejects.toMatchObject({ status: 503, code: 'PKCS11_DOWN' });
    });
  });
});
