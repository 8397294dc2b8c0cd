/** Single EST operations on the command line, against correct and misbehaving servers. */
import { createPrivateKey, randomBytes, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadClientConfig } from '../../src/client/config/load.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { sequence } from '../../src/pki/der/der.ts';
import {
  buildSignedData,
  certsOnly,
  issuerAndSerialNumber,
  keySigner,
  parseCertsOnly,
  parseContentInfo,
} from '../../src/pki/cms/cms.ts';
import { encryptPrivateKey } from '../../src/pki/cms/encrypted-private-key.ts';
import { buildEnvelopedData, type Recipient } from '../../src/pki/cms/enveloped-data.ts';
import { encodeCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';
import { parseCertificate, parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import { estuary, type Done } from '../support/local-command.ts';
import { basicConstraints, makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { buildCsr, commonName, makeKey } from '../support/csr.ts';
import { makeEstCa, mayEnroll, type Answers, type EstCa } from '../support/est-ca.ts';
import { csrOf, sendCertificates, sendStatus, type StandIn, type StandInRequest } from '../support/est-stand-in.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { openssl, temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
const file = (name: string, content: string | Buffer): string => {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
};
let est: EstCa;
let otp: string;
let standIn: StandIn;

beforeAll(async () => {
  est = await makeEstCa();
  otp = file('otp', 'secret\n');
});
afterEach(() => standIn.stop());
afterAll(() => folder.remove());

const start = async (answers: Answers = {}): Promise<void> => void (standIn = await est.start(answers));
const client = (...args: readonly string[]): Promise<Done> =>
  estuary(['client', ...args, '--url', standIn.url, '--ca-fingerprint', est.fingerprint]);
const withOtp = (...args: readonly string[]): Promise<Done> => client(...args, '--otp-file', otp);

describe('cacerts', () => {
  test('prints PEM, JSON or a DER certs-only message, and writes a new file', async () => {
    await start();
    const pem = encodePem('CERTIFICATE', est.ca.der);
    expect(await client('cacerts')).toEqual({ code: 0, out: pem, err: expect.any(String) as unknown });
    const json: unknown = JSON.parse((await client('cacerts', '--json')).out);
    expect(json).toMatchObject({ certificates: [{ subject: 'CN=EST CA', sha256: est.fingerprint, pem }] });
    const out = folder.file('ca.p7');
    expect(await client('cacerts', '--der', '--out', out)).toMatchObject({ code: 0, out: '' });
    expect(parseCertsOnly(readFileSync(out))).toEqual([est.ca.der]);
    const again = await client('cacerts', '--out', out);
    expect([again.code, again.err]).toEqual([
      1,
      expect.stringContaining(`${out} already exists. Pass --force to overwrite it.`) as unknown,
    ]);
    expect(await client('cacerts', '--out', out, '--force')).toMatchObject({ code: 0 });
    expect(readFileSync(out, 'utf8')).toBe(pem);
  });

  test('fails with code and message, also as JSON', async () => {
    await start({ cacerts: (request) => sendStatus(request, 503, { 'Retry-After': '9' }, 'busy') });
    const { code, out, err } = await client('cacerts', '--json');
    expect([code, err]).toEqual([1, 'error: cacerts: 503 (busy)\n']);
    expect(JSON.parse(out)).toEqual({
      outcome: 'failed',
      error: { code: 'SERVER_UNAVAILABLE', message: 'cacerts: 503 (busy)', status: 503, retry_after: 9 },
    });
  });
});

describe('csrattrs', () => {
  const attributes = [
    { oid: OID.challengePassword },
    { oid: OID.extensionRequest, values: [sequence()] },
    { oid: OID.ecPublicKey, values: [Buffer.from('06052b81040022', 'hex')] },
  ];
  const answer: Answers = {
    csrattrs: ({ response }) =>
      response
        .writeHead(200, { 'Content-Type': 'application/csrattrs' })
        .end(encodeCsrAttrs(attributes).toString('base64')),
  };

  test('prints names and values, JSON or DER', async () => {
    await start(answer);
    expect((await client('csrattrs')).out).toBe('challengePassword\nextensionRequest 3000\necPublicKey ec:P-384\n');
    const json: unknown = JSON.parse((await client('csrattrs', '--json')).out);
    expect(json).toMatchObject({
      attributes: [{ name: 'challengePassword' }, { values: ['3000'] }, { key_type: 'ec:P-384' }],
    });
    await client('csrattrs', '--der', '--out', folder.file('attributes.der'));
    expect(readFileSync(folder.file('attributes.der'))).toEqual(encodeCsrAttrs(attributes));
  });

  test('answers a challenge, and prints nothing if there are no demands', async () => {
    await start({ csrattrs: (request) => mayEnroll(request) && sendStatus(request, 204) });
    expect(await withOtp('csrattrs')).toMatchObject({ code: 0, out: '' });
    expect((await client('csrattrs')).code).toBe(1);
  });
});

describe('enroll for a request or a key from elsewhere', () => {
  const requestOf = (key = makeKey()): { der: Buffer; spki: Buffer } => ({
    der: buildCsr(key, { subject: commonName('made-elsewhere') }),
    spki: key.spki,
  });

  test.each([
    ['PEM', (der: Buffer) => encodePem('CERTIFICATE REQUEST', der)],
    ['base64', (der: Buffer) => der.toString('base64')],
    ['DER', (der: Buffer) => der],
  ])('--csr sends a request in %s as it is', async (form, encode) => {
    await start();
    const { der, spki } = requestOf();
    const { code, out } = await withOtp('enroll', '--csr', file(`request.${form}`, encode(der)));
    expect(code).toBe(0);
    expect(parsePemCertificates(out)[0]?.spki.equals(spki)).toBe(true);
    expect(Buffer.from(standIn.requests.at(-1)?.body ?? '', 'base64')).toEqual(der);
  });

  test('--csr writes a file, and rejects one that is not a request', async () => {
    await start();
    const [csr, out] = [file('request.der', requestOf().der), folder.file('made-elsewhere.der')];
    expect(await withOtp('enroll', '--csr', csr, '--out', out, '--der')).toMatchObject({ code: 0, out: '' });
    expect(formatName(parseCertificate(readFileSync(out)).subject)).toBe('CN=made-elsewhere');
    const wrong = await withOtp('enroll', '--csr', file('wrong', 'wrong'));
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('is not a usable CSR') as unknown]);
  });

  test('202 is exit code 3, and --wait repeats the same request', async () => {
    let answers = 0;
    await start({
      simpleenroll: async (request) => {
        if (!mayEnroll(request)) return undefined;
        if ((answers += 1) < 3) return sendStatus(request, answers === 1 ? 202 : 503, { 'Retry-After': '1' });
        return sendCertificates(request, [await est.issue(csrOf(request))]);
      },
    });
    const csr = file('request.der', requestOf().der);
    const first = await withOtp('enroll', '--csr', csr, '--json');
    expect([first.code, JSON.parse(first.out)]).toEqual([3, { outcome: 'pending', retry_after: 1 }]);
    const waited = await withOtp('enroll', '--csr', csr, '--json', '--wait', '60');
    expect(waited.code).toBe(0);
    expect(JSON.parse(waited.out)).toMatchObject({ outcome: 'issued', certificate: { subject: 'CN=made-elsewhere' } });
    expect(new Set(standIn.requests.flatMap(({ body }) => (body === '' ? [] : [body]))).size).toBe(1);
  });

  test('a CA certificate is accepted only if it was requested', async () => {
    const isCa = { extensions: [basicConstraints(true)] };
    await start({
      simpleenroll: async (request) =>
        mayEnroll(request) && sendCertificates(request, [await est.issue(csrOf(request), isCa)]),
    });
    const refused = await withOtp('enroll', '--csr', file('request.der', requestOf().der));
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining('a CA certificate, which was not requested') as unknown,
    ]);
    const key = file('ca.key', makeKey().pem);
    const asked = openssl(['req', '-new', '-key', key, '-subj', '/CN=Sub', '-addext', 'basicConstraints=CA:TRUE']);
    expect(await withOtp('enroll', '--csr', file('ca.csr', asked))).toMatchObject({ code: 0 });
  });

  test('--key certifies an existing key: once with --stdout, or kept in a folder and renewed with the same key', async () => {
    await start();
    const [pair, out] = [makeKey(), folder.file('kept')];
    const key = file('existing.key', pair.pem);
    const once = await withOtp('enroll', '--key', key, '--subject', 'CN=key', '--stdout');
    expect([once.code, parsePemCertificates(once.out)[0]?.spki]).toEqual([0, pair.spki]);
    const kept = await withOtp('enroll', '--key', key, '--subject', 'CN=key', '--out', out, '--json');
    expect(kept.code).toBe(0);
    expect(JSON.parse(kept.out)).toMatchObject({ certificates: [{ name: 'kept', outcome: 'changed' }] });
    const config = `${out}/client.toml`;
    expect(loadClientConfig(config).certificate[0]?.key_file).toBe(key);
    const renewed = await estuary(['client', 'renew', '--config', config, '--force', '--json']);
    expect(JSON.parse(renewed.out)).toMatchObject({ certificates: [{ outcome: 'changed' }] });
    expect(parsePemCertificates(readFileSync(`${out}/live/cert.pem`, 'utf8'))[0]?.spki).toEqual(pair.spki);
  });

  test.each([
    [
      'encrypted',
      (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }),
    ],
    ['not PEM', (key: KeyObject) => key.export({ format: 'der', type: 'pkcs8' })],
  ])('a key that is %s is named so', async (why, write) => {
    await start();
    const key = file('odd.key', write(makeKey().privateKey));
    const { code, err } = await client('enroll', '--key', key, '--subject', 'CN=a', '--stdout');
    expect([code, err]).toEqual([1, `error: ${key} does not contain a usable private key: it is ${why}\n`]);
  });

  test.each([
    [['enroll', '--stdout', '--subject', 'CN=a'], 'a new key would be lost'],
    [['enroll', '--csr', 'a', '--out', '/nonexistent/a'], '/nonexistent does not exist'],
    [['enroll', '--csr', 'a', '--out', 'a', '--stdout'], 'exclude each other'],
    [['reenroll'], '--cert FILE and --key FILE are missing'],
    [['serverkeygen'], '--subject DN'],
    [['serverkeygen', '--subject', 'CN=a', '--kek-file', '/dev/null'], '--kek-id HEX is missing'],
  ])('%j: %s', async (args, message) => {
    await start();
    expect(await client(...args)).toMatchObject({ code: 1, err: expect.stringContaining(message) as unknown });
    expect(standIn.requests).toHaveLength(0);
  });
});

describe('reenroll', () => {
  test('renews a certificate with its own key, or with a request from elsewhere', async () => {
    await start();
    const first = await makeClient('CN=device', est.ca);
    const identity = [
      '--cert',
      file('device.pem', encodePem('CERTIFICATE', first.der)),
      '--key',
      file('device.key', pkcs8Pem(first.keys)),
    ];
    const { code, out } = await client('reenroll', ...identity);
    const [renewed] = parsePemCertificates(out);
    const former = parseCertificate(first.der);
    expect([code, renewed?.spki, renewed?.subject.der]).toEqual([0, former.spki, former.subject.der]);
    expect(renewed?.serialNumber).not.toBe(former.serialNumber);
    expect(standIn.requests.at(-1)).toMatchObject({ operation: 'simplereenroll' });
    expect(standIn.requests.at(-1)?.clientCertificate).toBeDefined();
    const other = makeKey();
    const csr = file('rekey.der', buildCsr(other, { subject: commonName('device') }));
    expect(parsePemCertificates((await client('reenroll', ...identity, '--csr', csr)).out)[0]?.spki).toEqual(
      other.spki,
    );
    // As /etc/ssl/certs, a folder of CAs may have others in it.
    mkdirSync(folder.file('cas/java'), { recursive: true });
    file('cas/root.cer', est.ca.der);
    const inDer = ['--ca', folder.file('cas'), '--cert', file('device.der', first.der), ...identity.slice(2)];
    expect(await estuary(['client', 'reenroll', '--url', standIn.url, ...inDer])).toMatchObject({ code: 0, err: '' });
  });

  test('sends the chain of a certificate that came without it', async () => {
    const issuing = await makeCa('CN=Issuing', { issuer: est.ca });
    const device = await makeClient('CN=device', issuing);
    let isAuthorized = false;
    const answers: Answers = {
      cacerts: (request) => sendCertificates(request, [issuing.der, est.ca.der]),
      async simplereenroll(request) {
        isAuthorized = request.socket.authorized;
        sendCertificates(request, [await est.issue(csrOf(request))]);
      },
    };
    standIn = await est.start(answers, { ca: encodePem('CERTIFICATE', est.ca.der) });
    const cert = file('below.pem', encodePem('CERTIFICATE', device.der));
    const done = await client('reenroll', '--cert', cert, '--key', file('below.key', pkcs8Pem(device.keys)));
    expect([done.code, isAuthorized]).toEqual([0, true]);
  });

  test('renews the certificate of a client.toml', async () => {
    await start();
    const out = folder.file('configured');
    await withOtp('enroll', '--subject', 'CN=configured', '--out', out);
    const done = await estuary(['client', 'reenroll', '--config', `${out}/client.toml`]);
    expect([done.code, parsePemCertificates(done.out)[0]?.subjectAltNames]).toEqual([0, []]);
    expect(standIn.requests.at(-1)).toMatchObject({ operation: 'simplereenroll' });
  });
});

describe('serverkeygen', () => {
  type Protect = (pkcs8: Buffer, request: StandInRequest) => Promise<{ type: string; der: Buffer }>;
  const generated = makeKey('rsa2048');
  const pkcs8 = createPrivateKey(generated.pem).export({ format: 'der', type: 'pkcs8' });
  const plain: Protect = (der) => Promise.resolve({ type: 'application/pkcs8', der });
  const encrypted =
    (password: string): Protect =>
    async (der) => ({ type: 'application/pkcs8', der: await encryptPrivateKey(der, Buffer.from(password)) });
  const signedBy = async (signer: Issuer, der: Buffer): Promise<Buffer> => {
    const certificate = parseCertificate(signer.der);
    const signature = keySigner(signer.keys.privateKey, certificate.publicKey, issuerAndSerialNumber(certificate));
    const signed = await buildSignedData({
      contentType: OID.asymmetricKeyPackage,
      content: sequence(der),
      certificates: [signer.der],
      signers: [signature],
      signingTime: new Date(),
    });
    return parseContentInfo(signed).content;
  };
  const enveloped =
    (recipient: (request: StandInRequest) => Recipient, signer: () => Issuer = () => est.ca): Protect =>
    async (der, request) => ({
      type: 'application/pkcs7-mime; smime-type=server-generated-key',
      der: await buildEnvelopedData({
        contentType: OID.signedData,
        content: await signedBy(signer(), der),
        recipient: recipient(request),
        contentBits: 256,
        wrapBits: 256,
      }),
    });

  async function serve(protect: Protect, { keyFirst = false, quoted = false } = {}): Promise<void> {
    await start({
      serverkeygen: async (request) => {
        if (!mayEnroll(request)) return;
        const key = await protect(Buffer.from(pkcs8), request);
        const certificate = await est.issue({ ...csrOf(request), publicKey: parsePublicKey(generated.spki) });
        const part = (type: string, der: Buffer): string =>
          `--b+d\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${der.toString('base64')}\r\n`;
        const parts = [
          part('application/pkcs7-mime; smime-type=certs-only', certsOnly([certificate])),
          part(key.type, key.der),
        ];
        const body = `${(keyFirst ? parts.reverse() : parts).join('')}--b+d--\r\n`;
        const type = `multipart/mixed; boundary=${quoted ? '"b+d"' : 'b+d'}`;
        request.response.writeHead(200, { 'Content-Type': type }).end(body);
      },
    });
  }

  const generate = (...args: readonly string[]): Promise<Done> =>
    withOtp('serverkeygen', '--subject', 'CN=generated', ...args);
  const publicKeyOf = (request: StandInRequest): Recipient => {
    const { publicKey } = csrOf(request);
    return {
      kind: 'publicKey',
      rid: { kind: 'subjectKeyIdentifier', keyIdentifier: subjectKeyIdentifier(publicKey.spki) },
      publicKey,
    };
  };
  const kek = randomBytes(32);
  const sharedKey = (): Recipient => ({ kind: 'kek', keyIdentifier: Buffer.from('id'), key: kek });
  const equals = (pem: string, key: KeyObject): boolean => createPrivateKey(pem).equals(key);

  test.each([
    ['an unencrypted key', plain, () => []],
    ['a key encrypted with the one-time password', encrypted('secret'), () => []],
    [
      'a key encrypted with a pre-shared secret',
      encrypted('shared'),
      () => ['--key-password-file', file('shared', 'shared\n')],
    ],
    ['a key for a shared key', enveloped(sharedKey), () => ['--kek-file', file('kek', kek), '--kek-id', '6964']],
    [
      'a key for a shared key in hex',
      enveloped(sharedKey),
      () => ['--kek-file', file('kek.hex', kek.toString('hex')), '--kek-id', '6964'],
    ],
    ['a key for an EC key', enveloped(publicKeyOf), () => ['--decrypt-key', file('ec.key', makeKey().pem)]],
    ['a key for an RSA key', enveloped(publicKeyOf), () => ['--decrypt-key', file('rsa.key', makeKey('rsa2048').pem)]],
  ] as const)('opens %s, in either order of the parts', async (_, protect, args) => {
    for (const keyFirst of [false, true]) {
      await serve(protect, { keyFirst, quoted: keyFirst });
      const { code, out, err } = await generate(...args());
      expect([code, err]).toEqual([0, expect.not.stringContaining('error') as unknown]);
      expect(equals(out, createPrivateKey(generated.pem))).toBe(true);
      expect(parsePemCertificates(out.slice(out.indexOf('-----BEGIN CERT')))[0]?.spki).toEqual(generated.spki);
      await standIn.stop();
    }
    await start();
  });

  test('writes key.pem for its owner only, and cert.pem', async () => {
    await serve(encrypted('secret'));
    const out = folder.file('generated');
    expect(await generate('--out', out)).toMatchObject({ code: 0, out: '' });
    expect(statSync(`${out}/key.pem`).mode & 0o777).toBe(0o600);
    expect(existsSync(`${out}/cert.pem`)).toBe(true);
  });

  test('RFC 7030 §4.4.1: a request names its decryption key', async () => {
    await serve(enveloped(sharedKey));
    await generate('--kek-file', file('kek', kek), '--kek-id', '6964');
    const names = csrOf(standIn.requests.at(-1) ?? fail()).attributes.map(({ oid }) => oid);
    expect(names).toEqual(expect.arrayContaining([OID.decryptKeyIdentifier, OID.smimeCapabilities]));
  });

  const strange = (): Issuer => strangeCa;
  let strangeCa: Issuer;
  beforeAll(async () => (strangeCa = (await makeEstCa('CN=Strange')).ca));
  test.each([
    ['another password', encrypted('other'), [], 'the given password does not decrypt it'],
    [
      'no encryption for the named key',
      plain,
      ['--decrypt-key'],
      'is not encrypted for the key that the request named',
    ],
    [
      'another shared key',
      enveloped(() => ({ kind: 'kek', keyIdentifier: Buffer.from('id'), key: randomBytes(32) })),
      ['--kek'],
      'no recipient has this key',
    ],
    ['a key that nobody named', enveloped(sharedKey), [], 'a key that the request did not name'],
    [
      'the signature of a strange CA',
      enveloped(sharedKey, strange),
      ['--kek'],
      'not that of a certificate under a trusted CA',
    ],
    [
      'a certificate for another key',
      () => plain(createPrivateKey(makeKey().pem).export({ format: 'der', type: 'pkcs8' }), undefined as never),
      [],
      'is for another key',
    ],
  ] as const)('rejects %s', async (_, protect, args, message) => {
    await serve(protect);
    const options = args.flatMap((arg: string) =>
      arg === '--kek'
        ? ['--kek-file', file('kek', kek), '--kek-id', '6964']
        : ['--decrypt-key', file('ec.key', makeKey().pem)],
    );
    const out = folder.file('rejected');
    expect(await generate(...options, '--out', out)).toMatchObject({
      code: 1,
      err: expect.stringContaining(message) as unknown,
    });
    expect(existsSync(out)).toBe(false);
  });
});

function fail(): never {
  throw new Error('no request');
}
