/** RFC 7030 §4.5, RFC 8951 §4, RFC 9908: what GET csrattrs requests, and that enrollment requires exactly that. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  attribute,
  buildCsr,
  challengePassword,
  commonName,
  dns,
  extension,
  extensionRequest,
  makeKey,
  name,
  onTheWire,
  san,
  type CsrParts,
  type TestKey,
} from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { sendRaw } from '../support/https.ts';
import { bitString, boolean, printableString, utf8String } from '../../src/pki/der/der.ts';
import { parseCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      section(config, 'est')['challenge_password'] = 'ignore';
      caSection(config)['csrattrs'] = {
        challenge_password: true,
        key_type: 'ec:P-384',
        signature: 'ecdsaWithSHA384',
        extensions: ['subjectAltName', { name: 'keyUsage', value: ['digitalSignature'] }],
        oids: ['2.5.4.5'],
        template: true,
        subject: [{ O: 'Example' }, { CN: '' }],
      };
    },
  });
});
afterAll(() => estuary.stop());

const key = makeKey('P-384');
const keyUsage = extension('2.5.29.15', bitString(Buffer.from([0x80]), 7), boolean(true));
const subject = name(
  attribute('2.5.4.10', utf8String('Example')),
  attribute('2.5.4.5', printableString('0815')),
  attribute('2.5.4.3', utf8String('device-1')),
);
const ALGORITHM = { algorithm: Buffer.from('300a06082a8648ce3d040303', 'hex'), hash: 'sha384' };
const wanted: CsrParts = {
  ...ALGORITHM,
  subject,
  attributes: [challengePassword('x'), extensionRequest(san(dns('a.example')), keyUsage)],
};

async function enroll(parts: CsrParts, with_: TestKey = key) {
  const { token } = await estuary.otp();
  return estuary.enroll(onTheWire(buildCsr(with_, parts)), { password: token });
}

/** RFC 9908 §3.4, written out by hand: version, subject, [0] key, [1] attributes with extensionReqTemplate. */
const TEMPLATE = [
  '3060',
  '020100', // v1
  '301b', // subject: O=Example, then a CN without a value
  '3110300e060355040a0c074578616d706c65',
  '310730050603550403',
  'a012', // [0] id-ecPublicKey, secp384r1, no key
  '301006072a8648ce3d020106052b81040022',
  'a12a', // [1]
  '3028',
  '060b2a864886f70d010910023e', // id-aa-extensionReqTemplate
  '3119',
  '3017',
  '30050603551d11', // subjectAltName without a value
  '300e0603551d0f0101ff040403020780', // keyUsage, critical, digitalSignature
].join('');

test('bare OIDs, the key, the extensions with values, and the template', async () => {
  const answer = await estuary.est('csrattrs');
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('application/csrattrs');
  const items = parseCsrAttrs(Buffer.from(answer.text, 'base64'));
  expect(items.map(({ oid, values }) => [oid, values?.map((value) => value.toString('hex')).join()])).toEqual([
    ['1.2.840.113549.1.9.7', undefined],
    ['1.2.840.10045.2.1', '06052b81040022'],
    ['2.5.29.17', undefined],
    ['1.2.840.113549.1.9.14', '3010300e0603551d0f0101ff040403020780'],
    ['2.5.4.5', undefined],
    ['1.2.840.10045.4.3.3', undefined],
    ['1.2.840.113549.1.9.16.2.61', TEMPLATE],
  ]);
});

test("globalsign's way: a GET that announces chunks and sends none gets the same, not in chunks", async () => {
  const head = ['GET /.well-known/est/csrattrs HTTP/1.1', 'Host: localhost', 'User-Agent: Go-http-client/1.1'];
  const lines = [...head, 'Transfer-Encoding: chunked', 'Accept-Encoding: gzip', 'Connection: close', '', '0', '', ''];
  const answer = await sendRaw(estuary.server.port('est'), { ca: estuary.root }, lines.join('\r\n'));
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/^Content-Length: \d+\r$/m);
  expect(answer).not.toMatch(/^Transfer-Encoding/im);
  expect(answer.split('\r\n\r\n')[1]).toBe((await estuary.est('csrattrs')).text);
});

test('a CA without [ca.csrattrs] answers 204, with nothing in it', async () => {
  const answer = await estuary.est('lab/csrattrs');
  expect(answer.status).toBe(204);
  expect(answer.text).toBe('');
});

describe('what csrattrs asks for, policy demands', () => {
  test('a CSR with all of it is certified', async () => {
    const answer = await enroll(wanted);
    expect(answer.status, answer.text).toBe(200);
  });

  const attributes = wanted.attributes ?? [];
  test.each<[string, CsrParts, RegExp]>([
    ['no challengePassword', { ...wanted, attributes: attributes.slice(1) }, /challengePassword/],
    ['no SAN', { ...wanted, attributes: [challengePassword('x'), extensionRequest(keyUsage)] }, /subjectAltName/],
    [
      'no keyUsage',
      { ...wanted, attributes: [challengePassword('x'), extensionRequest(san(dns('a.example')))] },
      /keyUsage/,
    ],
    [
      'another signature algorithm',
      { ...wanted, algorithm: Buffer.from('300a06082a8648ce3d040302', 'hex'), hash: 'sha256' },
      /ecdsaWithSHA384/,
    ],
    [
      'another O',
      {
        ...wanted,
        subject: name(
          attribute('2.5.4.10', utf8String('Other')),
          attribute('2.5.4.5', printableString('1')),
          attribute('2.5.4.3', utf8String('d')),
        ),
      },
      /organizationName|\bO\b/,
    ],
    [
      'no CN',
      {
        ...wanted,
        subject: name(attribute('2.5.4.10', utf8String('Example')), attribute('2.5.4.5', printableString('1'))),
      },
      /CN|commonName/,
    ],
    [
      'none of a further OID',
      { ...wanted, subject: name(attribute('2.5.4.10', utf8String('Example')), attribute('2.5.4.3', utf8String('d'))) },
      /serialNumber/,
    ],
  ])('%s: 400 that says so', async (_, parts, text) => {
    const answer = await enroll(parts);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).toMatch(text);
  });

  test('another key type: 400 that says so', async () => {
    const answer = await enroll({ ...wanted, algorithm: ALGORITHM.algorithm }, makeKey('P-256'));
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/ec:P-384/);
  });

  test('the other CA asks for nothing', async () => {
    const { token } = await estuary.otp();
    const csr = onTheWire(buildCsr(makeKey(), { subject: commonName('plain') }));
    expect((await estuary.enroll(csr, { password: token, path: 'lab/simpleenroll' })).status).toBe(200);
  });
});
