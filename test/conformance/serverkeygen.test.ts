/**
 * RFC 7030 §4.4: what the key is, how it is protected, what is refused.
 *
 * Longer than other files: its cases share a server.
 */
import { createPrivateKey, randomBytes, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  buildCsr,
  commonName,
  csrAttribute,
  dns,
  extensionRequest,
  makeKey,
  onTheWire,
  otpChallenge,
  san,
  type CsrParts,
  type KeyKind,
  type TestKey,
} from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import { openssl, temporaryFolder } from '../support/openssl.ts';
import { expectMatch, openEnveloped, readPkcs8, readServerKey } from '../support/server-key.ts';
import type { Answer } from '../support/https.ts';
import { NULL, octetString, oid, sequence } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';

const folder = temporaryFolder();
const KEK = randomBytes(32);
const key = makeKey();
const rsa = makeKey('rsa2048');
let estuary: Estuary;

/** A self-signed certificate for a key-encryption key, in the server's folder. */
function certificateFor(dir: string, name: string, owner: TestKey, more: readonly string[] = []): string {
  const keyFile = join(dir, `${name}.key`);
  writeFileSync(keyFile, owner.pem);
  const file = join(dir, `${name}.pem`);
  writeFileSync(
    file,
    openssl(['req', '-x509', '-new', '-key', keyFile, '-subj', `/CN=${name}`, '-days', '9', ...more]),
  );
  return file;
}

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'kek.bin'), KEK);
      section(config, 'serverkeygen')['encryption'] = 'optional';
      section(config, 'serverkeygen')['keys'] = [
        { id: '6b6579312d', symmetric_key_file: 'kek.bin' },
        { id: 'aa01', certificate: certificateFor(dir, 'rsa', rsa) },
        { id: 'aa02', certificate: certificateFor(dir, 'ec', key) },
        { id: 'aa03', certificate: certificateFor(dir, 'signs', rsa, ['-addext', 'keyUsage=digitalSignature']) },
      ];
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  folder.remove();
});

async function keygen(parts: CsrParts = {}, from: TestKey = key): Promise<Answer> {
  return post(onTheWire(buildCsr(from, parts)));
}
async function post(body: string, headers = {}): Promise<Answer> {
  const { token } = await estuary.otp();
  return estuary.enroll(body, { path: 'serverkeygen', password: token, headers });
}

const decryptKey = (id: string): Buffer => csrAttribute(OID.decryptKeyIdentifier, octetString(Buffer.from(id, 'hex')));
const asymmetric = (id: string | Buffer): Buffer =>
  csrAttribute(OID.asymmetricDecryptKeyIdentifier, octetString(Buffer.isBuffer(id) ? id : Buffer.from(id, 'hex')));
const capabilities = (...oids: string[]): Buffer =>
  csrAttribute(OID.smimeCapabilities, sequence(...oids.map((capability) => sequence(oid(capability)))));

describe('RFC 7030 §4.4.2: a key without further encryption, where `encryption = "optional"`', () => {
  test.each<[KeyKind, string | undefined]>([
    ['P-256', 'ec'],
    ['P-384', 'ec'],
    ['ed25519', 'ed25519'],
    ['rsa2048', 'rsa'],
    ['rsa3072', 'rsa'],
  ])("a key of the kind of the CSR's own (%s), as PrivateKeyInfo", async (kind, type) => {
    const own = makeKey(kind);
    const names = [extensionRequest(san(dns('a.example')))];
    const answer = readServerKey(await keygen({ subject: commonName('device-7'), attributes: names }, own));
    expect(answer.keyType).toBe('application/pkcs8');
    const privateKey = readPkcs8(answer.key);
    expect(privateKey.asymmetricKeyType).toBe(type);
    expectMatch(answer, privateKey);
    expect(answer.certificate.publicKey.equals(own.publicKey)).toBe(false);
    expect(answer.certificate.subject).toBe('CN=device-7');
    expect(answer.certificate.subjectAltName).toBe('DNS:a.example');
  });

  test.each<[string, CsrParts, KeyKind]>([
    ['a signature that is wrong', { signature: Buffer.alloc(70, 1) }, 'P-256'],
    ['an RSA key that is too small', {}, 'rsa1024'],
    ['a DSA key', { algorithm: sequence(oid('2.16.840.1.101.3.4.3.2')) }, 'dsa'],
    ['a signature algorithm that nobody knows', { algorithm: sequence(oid('1.2.3.4')) }, 'P-256'],
    ['a curve that is not supported', {}, 'secp256k1'],
    [
      'an EC key that is no point at all',
      { spki: sequence(sequence(oid(OID.ecPublicKey), oid(OID.secp256r1)), Buffer.from('03020000', 'hex')) },
      'P-256',
    ],
  ])("§4.4.1: the CSR's own key and signature are ignored: %s", async (_, parts, kind) => {
    const answer = readServerKey(await keygen(parts, makeKey(kind)));
    expectMatch(answer, readPkcs8(answer.key));
  });

  test("globalsign's way: chunks, CRLF at 64 columns, the password unasked", async () => {
    const { token } = await estuary.otp();
    const body = onTheWire(buildCsr(key)).replace(/.{64}/g, '$&\r\n');
    const headers = { 'User-Agent': 'Go-http-client/1.1', 'Accept-Encoding': 'gzip' };
    const answer = await estuary.enroll(body, { path: 'serverkeygen', password: token, chunked: true, headers });
    expectMatch(readServerKey(answer), readPkcs8(readServerKey(answer).key));
    expect(answer.headers['transfer-encoding']).toBeUndefined();
    expect(answer.headers['content-encoding']).toBeUndefined();
  });

  test('with a client certificate instead of a password', async () => {
    const client = await estuary.enrolled(makeKey());
    const answer = readServerKey(await estuary.enroll(onTheWire(buildCsr(key)), { path: 'serverkeygen', client }));
    expectMatch(answer, readPkcs8(answer.key));
  });

  test('the certificate is recorded and the key is audited, each once', async () => {
    const { certificate } = readServerKey(await keygen({ subject: commonName('audited') }));
    const { json } = await estuary.admin('GET', '/admin/audit?type=key.generated&limit=500');
    const items: unknown = json['items'];
    expect(Array.isArray(items) && items.length > 0).toBe(true);
    const { status } = await estuary.admin('GET', `/admin/certificates/${certificate.serialNumber.toLowerCase()}`);
    expect(status).toBe(200);
  });
});

describe('RFC 7030 §4.4.1.1: a pre-shared symmetric key', () => {
  const secret = ['-secretkey', KEK.toString('hex'), '-secretkeyid', '6b6579312d'];

  test('openssl opens the key with it; the package inside is signed by the CA', async () => {
    const answer = readServerKey(await keygen({ attributes: [decryptKey('6b6579312d')] }));
    expect(answer.keyType).toBe('application/pkcs7-mime; smime-type=server-generated-key');
    expectMatch(answer, openEnveloped(answer, secret, estuary.root, folder.file));
  });

  test.each([
    ['aes-128-cbc', OID.aes128CBC],
    ['aes-192-cbc', OID.aes192CBC],
    ['aes-256-cbc', OID.aes256CBC],
  ])('§4.4.1: SMIMECapabilities with nothing but %s are honored', async (name, capability) => {
    const attributes = [decryptKey('6b6579312d'), capabilities('1.2.840.113549.3.7', capability)];
    const answer = readServerKey(await keygen({ attributes }));
    expectMatch(answer, openEnveloped(answer, secret, estuary.root, folder.file));
    expect(openssl(['asn1parse', '-inform', 'DER'], answer.key).toString()).toContain(`:${name}`);
  });
});

describe('RFC 7030 §4.4.1.2: an asymmetric key', () => {
  test.each([
    ['an RSA certificate of the configuration', 'aa01', 'rsa'],
    ['an EC certificate of the configuration', 'aa02', 'ec'],
  ])('%s', async (_, id, name) => {
    const answer = readServerKey(await keygen({ attributes: [asymmetric(id)] }));
    expect(answer.keyType).toBe('application/pkcs7-mime; smime-type=server-generated-key');
    const args = ['-inkey', join(estuary.dir, `${name}.key`), '-recip', join(estuary.dir, `${name}.pem`)];
    expectMatch(answer, openEnveloped(answer, args, estuary.root, folder.file));
  });

  test.each<KeyKind>(['rsa2048', 'P-256', 'P-384'])(
    "the CSR's own key (%s), named by its key identifier",
    async (kind) => {
      const own = makeKey(kind);
      const answer = readServerKey(await keygen({ attributes: [asymmetric(subjectKeyIdentifier(own.spki))] }, own));
      const certificate = certificateFor(estuary.dir, `own-${kind}`, own);
      const args = ['-inkey', join(estuary.dir, `own-${kind}.key`), '-recip', certificate];
      expectMatch(answer, openEnveloped(answer, args, estuary.root, folder.file));
    },
  );
});

describe('refused, and no use of the one-time password is taken', () => {
  const big = makeKey('rsa1024');
  const rows: [string, CsrParts, string, TestKey?][] = [
    ['an unknown symmetric key', { attributes: [decryptKey('6b6579312e')] }, 'does not know the key'],
    ['an unknown asymmetric key', { attributes: [asymmetric('bb')] }, 'does not know the key'],
    ['the identifier of a certificate as a symmetric one', { attributes: [decryptKey('aa01')] }, 'does not know'],
    ['the identifier of a symmetric key as an asymmetric one', { attributes: [asymmetric('6b6579312d')] }, 'not know'],
    ['a certificate that only signs', { attributes: [asymmetric('aa03')] }, 'keyEncipherment'],
    [
      "the CSR's own key, which is too small",
      { attributes: [asymmetric(subjectKeyIdentifier(big.spki))] },
      '1024 bits',
      big,
    ],
    [
      'capabilities without a content encryption that we have',
      { attributes: [decryptKey('6b6579312d'), capabilities('1.2.840.113549.3.7')] },
      'AES in CBC mode',
    ],
    [
      'malformed capabilities',
      { attributes: [decryptKey('6b6579312d'), csrAttribute(OID.smimeCapabilities, sequence(NULL))] },
      'not valid DER',
    ],
    ['no subject and no name', { subject: sequence() }, 'neither a subject'],
    ['trailing bytes', { trailer: NULL }, 'not valid DER'],
  ];

  test.each(rows)('%s', async (_, parts, message, from = key) => {
    const { token, id } = await estuary.otp({ max_uses: 1 });
    const answer = await estuary.enroll(onTheWire(buildCsr(from, parts)), { path: 'serverkeygen', password: token });
    expect({ status: answer.status, text: answer.text }).toEqual({
      status: 400,
      text: expect.stringContaining(message) as string,
    });
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    const { json } = await estuary.admin('GET', `/admin/otp/${id}`);
    expect(json).toMatchObject({ uses: 0 });
  });

  test('no credentials, a wrong password, another method and another media type', async () => {
    const body = onTheWire(buildCsr(key));
    expect((await estuary.enroll(body, { path: 'serverkeygen' })).status).toBe(401);
    expect((await estuary.enroll(body, { path: 'serverkeygen', password: 'no' })).text).toBe('invalid OTP token');
    expect((await estuary.est('serverkeygen')).status).toBe(405);
    const headers = { 'Content-Type': 'application/pkcs7-mime' };
    expect((await estuary.est('serverkeygen', { body, headers })).status).toBe(415);
  });
});

test('rule 5: a burst of 100 requests for RSA keys is bounded, and cacerts goes on answering', async () => {
  const client = await estuary.enrolled(makeKey());
  const body = onTheWire(buildCsr(rsa));
  const burst = Array.from({ length: 100 }, () => estuary.enroll(body, { path: 'serverkeygen', client }));
  const settled = Promise.allSettled(burst);
  const done = settled.then(() => true);
  let answered = 0;
  do {
    expect((await estuary.est('cacerts')).status).toBe(200);
    answered++;
  } while (!(await Promise.race([done, Promise.resolve(false)])));
  expect(answered).toBeGreaterThan(1);
  const answers = (await settled).map((answer) => {
    if (answer.status === 'rejected') throw answer.reason;
    return answer.value;
  });
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
  for (const answer of answers) {
    expect([200, 503]).toContain(answer.status);
    if (answer.status === 503) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  }
  const moduli = answers.filter(({ status }) => status === 200).map((answer) => readServerKey(answer).certificate);
  expect(new Set(moduli.map(({ publicKey }) => publicKey.export({ type: 'spki', format: 'pem' }))).size).toBe(
    moduli.length,
  );
});

test('SIGHUP: a shared key that was replaced in its file, a new one and another protection count at once', async () => {
  const fresh = randomBytes(16);
  writeFileSync(join(estuary.dir, 'kek.bin'), fresh);
  estuary.reconfigure((config) => {
    section(config, 'serverkeygen')['keys'] = [
      { id: '6b6579312d', symmetric_key_file: 'kek.bin' },
      { id: 'bb01', symmetric_key_file: 'kek.bin' },
    ];
    section(config, 'serverkeygen')['encryption'] = 'required';
  });
  estuary.server.signal('SIGHUP');
  await expect.poll(() => estuary.server.output()).toContain('configuration reloaded');
  for (const id of ['6b6579312d', 'bb01']) {
    const answer = readServerKey(await keygen({ attributes: [decryptKey(id)] }));
    const args = ['-secretkey', fresh.toString('hex'), '-secretkeyid', id];
    expectMatch(answer, openEnveloped(answer, args, estuary.root, folder.file));
  }
  expect((await keygen({ attributes: [asymmetric('aa01')] })).text).toContain('does not know the key');
  expect((await keygen()).text).toContain('only encrypted');
  writeFileSync(join(estuary.dir, 'kek.bin'), KEK);
});

describe('serverkeygen.encryption', () => {
  const restartWith = async (change: (keygen: TomlTable, config: TomlTable, dir: string) => void): Promise<void> => {
    await estuary.server.stop();
    estuary.reconfigure((config, dir) => change(section(config, 'serverkeygen'), config, dir));
    await estuary.restart();
  };
  /** `openssl pkcs8` writes PEM. */
  const open = (der: Buffer, password: string): KeyObject =>
    createPrivateKey(openssl(['pkcs8', '-inform', 'DER', '-passin', `pass:${password}`], der));

  describe('nothing configured', () => {
    beforeAll(() => restartWith((keygen) => delete keygen['encryption']));
    const body = onTheWire(buildCsr(key));

    test("a one-time password encrypts its own client's key: PBES2 with AES-256", async () => {
      const { token } = await estuary.otp();
      const answer = readServerKey(await estuary.enroll(body, { path: 'serverkeygen', password: token }));
      expect(answer.keyType).toBe('application/pkcs8');
      expect(() => readPkcs8(answer.key)).toThrow();
      expectMatch(answer, open(answer.key, token));
      const structure = openssl(['asn1parse', '-inform', 'DER'], answer.key).toString();
      for (const algorithm of ['PBES2', 'PBKDF2', 'hmacWithSHA256', 'aes-256-cbc'])
        expect(structure).toContain(`:${algorithm}`);
    });

    test('a one-time password in the CSR (RFC 7894) encrypts it, too', async () => {
      const { token } = await estuary.otp();
      const csr = onTheWire(buildCsr(key, { attributes: [otpChallenge(token)] }));
      const answer = readServerKey(await estuary.enroll(csr, { path: 'serverkeygen' }));
      expectMatch(answer, open(answer.key, token));
    });

    test('a client with a certificate is refused with what to do, and so is one whose password was not looked at', async () => {
      const client = await estuary.enrolled(makeKey());
      const { token, id } = await estuary.otp();
      for (const call of [{ client }, { client, password: token }]) {
        const answer = await estuary.enroll(body, { path: 'serverkeygen', ...call });
        expect(answer.status).toBe(400);
        for (const name of ['DecryptKeyIdentifier', 'AsymmetricDecryptKeyIdentifier', 'password_file', 'password_env'])
          expect(answer.text).toMatch(new RegExp(`\\b${name}\\b`));
      }
      expect((await estuary.admin('GET', `/admin/otp/${id}`)).json).toMatchObject({ uses: 0 });
    });
  });

  test('est.serverkeygen = false is answered 501', async () => {
    await estuary.server.stop();
    estuary.reconfigure((config) => (section(config, 'est')['serverkeygen'] = false));
    await estuary.restart();
    expect((await keygen()).status).toBe(501);
  });
});
