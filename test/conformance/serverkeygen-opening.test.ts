/** docs/guides/serverkeygen.md, "Opening each form": its command lines open what the server sends, as they are printed. */
import { createPrivateKey, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../support/command.ts';
import { buildCsr, commonName, csrAttribute, makeKey, onTheWire, type KeyKind } from '../support/csr.ts';
import { caSection, Estuary, section, type EstCall } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { openssl } from '../support/openssl.ts';
import { ROOT } from '../support/root.ts';
import { expectMatch, openEnveloped, readServerKey, type ServerKeyAnswer } from '../support/server-key.ts';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';

const KEK = randomBytes(32);
const KEK_ID = '6b6579312d';
const key = makeKey();
const recipients = { rsa: makeKey('rsa2048'), ec: makeKey('P-256') } as const;
let estuary: Estuary;
const file = (name: string): string => join(estuary.dir, name);

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'kek.bin'), KEK);
      const keys: Record<string, string>[] = [{ id: KEK_ID, symmetric_key_file: 'kek.bin' }];
      for (const [name, { pem }] of Object.entries(recipients)) {
        writeFileSync(join(dir, `${name}.key`), pem);
        const request = [
          'req',
          '-x509',
          '-new',
          '-key',
          join(dir, `${name}.key`),
          '-subj',
          `/CN=${name}`,
          '-days',
          '9',
        ];
        writeFileSync(join(dir, `${name}.pem`), openssl(request));
        keys.push({ id: Buffer.from(name).toString('hex'), certificate: `${name}.pem` });
      }
      Object.assign(section(config, 'serverkeygen'), { encryption: 'optional', keys });
      section(caSection(config, 1), 'profile')['key_usage'] = ['digitalSignature', 'keyEncipherment', 'keyAgreement'];
    },
  });
});
afterAll(() => estuary.stop());

const identifier = (type: string, octets: Buffer): Buffer => csrAttribute(type, octetString(octets));
const symmetric = identifier(OID.decryptKeyIdentifier, Buffer.from(KEK_ID, 'hex'));
const asymmetric = (octets: Buffer): Buffer => identifier(OID.asymmetricDecryptKeyIdentifier, octets);

function keygen(attributes: readonly Buffer[], call: EstCall & { path?: string; subject?: string }): Promise<Answer> {
  const { subject = 'opened', ...rest } = call;
  const body = onTheWire(buildCsr(key, { subject: commonName(subject), attributes }));
  return estuary.enroll(body, { path: 'serverkeygen', ...rest });
}

/** The code blocks of the section, in their order. */
function documented(): { plain: string; password: string; symmetric: string; asymmetric: string; package: string } {
  const text = readFileSync(join(ROOT, 'docs/guides/serverkeygen.md'), 'utf8');
  const [, after = ''] = text.split('## Opening each form\n');
  const [part = ''] = after.split('\n## ');
  const [plain = '', password = '', decrypt = '', inside = '', ...more] = [...part.matchAll(/```sh\n([^]*?)```/g)].map(
    ([, block = '']) => block,
  );
  const [symmetricLine = '', asymmetricLine = ''] = decrypt.trim().split('\n');
  expect([more.length, symmetricLine.includes('-secretkey'), asymmetricLine.includes('-recip')]).toEqual([
    0,
    true,
    true,
  ]);
  return { plain, password, symmetric: symmetricLine, asymmetric: asymmetricLine, package: inside };
}

/** Runs printed lines in the server's folder, with their words in capitals replaced, and reads the key they leave. */
async function opens(
  answer: ServerKeyAnswer,
  lines: readonly string[],
  words: Record<string, string> = {},
): Promise<void> {
  writeFileSync(file('key.der'), answer.key);
  writeFileSync(file('ROOT.pem'), estuary.root);
  const offset = "$(openssl asn1parse -inform DER -in package.der | sed -n '1s/.*hl=\\([0-9]*\\).*/\\1/p')";
  let script = lines.join('\n');
  for (const [word, value] of Object.entries({ OFFSET: offset, ...words })) script = script.replaceAll(word, value);
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`;
  await run('bash', ['-euo', 'pipefail', '-c', script], { cwd: estuary.dir, env: { PATH } });
  expectMatch(answer, createPrivateKey(readFileSync(file('device.key'))));
}

describe('docs/guides/serverkeygen.md: the printed lines', () => {
  test('PrivateKeyInfo', async () => {
    const { token } = await estuary.otp();
    await opens(readServerKey(await keygen([], { password: token })), [documented().plain]);
  });

  test('EnvelopedData for the shared key', async () => {
    const { token } = await estuary.otp();
    const lines = documented();
    const words = { KEK_HEX: KEK.toString('hex'), ID_HEX: KEK_ID };
    const answer = readServerKey(await keygen([symmetric], { password: token }));
    await opens(answer, [lines.symmetric, lines.package], words);
  });

  test('the printed lines make a request with a key identifier', async () => {
    const [, after = ''] = readFileSync(join(ROOT, 'docs/guides/serverkeygen.md'), 'utf8').split('## Making a request');
    const making = (/```sh\n([^]*?)```/.exec(after)?.[1] ?? '').replaceAll('ID_HEX', KEK_ID);
    const PATH = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`;
    await run('bash', ['-euo', 'pipefail', '-c', making], { cwd: estuary.dir, env: { PATH } });
    const { token } = await estuary.otp();
    const body = readFileSync(file('request.b64'));
    const answer = readServerKey(await estuary.enroll(body, { path: 'serverkeygen', password: token }));
    const lines = documented();
    await opens(answer, [lines.symmetric, lines.package], { KEK_HEX: KEK.toString('hex'), ID_HEX: KEK_ID });
  });

  test.each(['rsa', 'ec'])('EnvelopedData for a certificate (%s)', async (name) => {
    const { token } = await estuary.otp();
    const lines = documented();
    const answer = readServerKey(await keygen([asymmetric(Buffer.from(name))], { password: token }));
    await opens(answer, [lines.asymmetric.replaceAll('device-kek', name), lines.package]);
  });

  test('EncryptedPrivateKeyInfo', async () => {
    await estuary.server.stop();
    estuary.reconfigure((config) => (section(config, 'serverkeygen')['encryption'] = 'password'));
    await estuary.restart();
    const { token } = await estuary.otp();
    writeFileSync(file('password'), token);
    await opens(readServerKey(await keygen([], { password: token })), [documented().password], { FILE: 'password' });
  });
});

describe('RFC 7030 §4.4.1.2: the key of the certificate that authenticates, named by its subjectKeyIdentifier', () => {
  test.each<[KeyKind, string]>([
    ['rsa2048', 'RSAES-OAEP'],
    ['P-256', 'ECDH'],
    ['P-384', 'ECDH'],
  ])('%s (%s)', async (kind) => {
    const own = makeKey(kind);
    const client = await estuary.enrolled(own, `client-${kind}`, [], 'lab/simpleenroll');
    writeFileSync(file('client.pem'), client.cert);
    writeFileSync(file('client.key'), client.key);
    const [certificate] = parsePemCertificates(client.cert);
    const ski = certificate?.subjectKeyIdentifier ?? Buffer.alloc(0);
    expect(ski).toHaveLength(20);
    const answer = readServerKey(
      await keygen([asymmetric(ski)], { client, path: 'lab/serverkeygen', subject: `client-${kind}` }),
    );
    const args = ['-inkey', file('client.key'), '-recip', file('client.pem')];
    expectMatch(answer, openEnveloped(answer, args, estuary.root, file));
  });

  test('a certificate that is for signatures only is refused, another client does not know it', async () => {
    const client = await estuary.enrolled(makeKey(), 'signs');
    const [certificate] = parsePemCertificates(client.cert);
    const named = [asymmetric(certificate?.subjectKeyIdentifier ?? Buffer.alloc(0))];
    const answer = await keygen(named, { client, subject: 'signs' });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('without the key usage keyAgreement')]);
    const other = await estuary.enrolled(makeKey(), 'other');
    expect((await keygen(named, { client: other, subject: 'other' })).text).toContain('does not know the key');
  });
});
