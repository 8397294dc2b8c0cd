/** A generated key never leaves in a weaker form than configured: every kind of requester, with and without a pre-shared secret. */
import { describe, expect, test } from 'vitest';
import type { Identity } from '../../src/auth/identity.ts';
import { chooseProtection, type KeyProtectionSettings } from '../../src/enrollment/key-protection.ts';
import { integer, octetString, oid, sequence } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCsrWithoutProof } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import { keyUsage, makeCa, makeClient, NOT_AFTER, NOT_BEFORE, ski } from '../support/certificates.ts';
import { buildCsr, commonName, csrAttribute, makeKey, rsaSpki, type TestKey } from '../support/csr.ts';
import { mtlsIdentity, otpIdentity } from './support.ts';

const certificate = parseCertificate((await makeClient('CN=device-1', await makeCa('CN=Maker'))).der);
const TOKEN = Buffer.from('a one-time password');
const SECRET = Buffer.from('the pre-shared secret');
const key = makeKey();

const base = { requester: 'x', display: 'x' };
const IDENTITIES: readonly (readonly [string, Identity])[] = [
  ['one-time password', otpIdentity({ password: TOKEN })],
  ['client certificate', mtlsIdentity(certificate)],
  [
    'Kerberos ticket',
    { ...base, method: 'gssapi', principal: 'x@EXAMPLE.COM', subject: certificate.subject, replyToken: undefined },
  ],
  ['CMC shared secret', { ...base, method: 'cmc', certificate: undefined, issuer: undefined }],
];

function choose(
  identity: Identity,
  settings: Pick<KeyProtectionSettings, 'encryption'> & { readonly password?: Buffer },
  attributes: readonly Buffer[] = [],
): unknown {
  const csr = parseCsrWithoutProof(buildCsr(key, { subject: commonName('device-1'), attributes }));
  const none = { password: undefined, symmetricKeys: new Map<string, Buffer>(), certificates: new Map() };
  try {
    return chooseProtection({ ...none, ...settings }, csr, identity, Date.now());
  } catch (error) {
    return error;
  }
}

describe.each(IDENTITIES)('a requester with a %s', (_, identity) => {
  const byToken = identity.method === 'otp';

  test('"password": the one-time password of the request, otherwise the pre-shared secret', () => {
    expect(choose(identity, { encryption: 'password', password: SECRET })).toEqual({
      form: 'password',
      password: byToken ? TOKEN : SECRET,
    });
  });

  test('"password" without a pre-shared secret: only a one-time password gets a key', () => {
    const chosen = choose(identity, { encryption: 'password' });
    if (byToken) expect(chosen).toEqual({ form: 'password', password: TOKEN });
    else expect(chosen).toMatchObject({ kind: 'bad-request', code: 'KEY_PASSWORD_MISSING' });
  });

  test('"required": refused, whatever passwords there are', () => {
    const chosen = choose(identity, { encryption: 'required', password: SECRET });
    expect(chosen).toMatchObject({ kind: 'bad-request', code: 'KEY_ENCRYPTION_REQUIRED' });
  });

  test('"optional": TLS alone', () => {
    expect(choose(identity, { encryption: 'optional', password: SECRET })).toEqual({ form: 'tls' });
  });

  test.each(['password', 'required', 'optional'] as const)(
    '"%s": an unknown key identifier is an error',
    (encryption) => {
      for (const type of [OID.decryptKeyIdentifier, OID.asymmetricDecryptKeyIdentifier]) {
        const attributes = [csrAttribute(type, octetString(Buffer.from('ff', 'hex')))];
        const chosen = choose(identity, { encryption, password: SECRET }, attributes);
        expect(chosen).toMatchObject({ kind: 'bad-request', code: 'KEY_IDENTIFIER_UNKNOWN' });
      }
    },
  );
});

const maker = await makeCa('CN=Maker');
const ID = Buffer.from('0102', 'hex');

interface Wish {
  /** Octets of the identifiers of a symmetric and of an asymmetric key. */
  readonly symmetric?: Buffer;
  readonly asymmetric?: Buffer;
  /** OIDs; a pair is an algorithm with its key wrap. */
  readonly capabilities?: readonly (string | readonly [string, string])[];
  readonly key?: TestKey;
  readonly spki?: Buffer;
  readonly identity?: Identity;
  readonly now?: number;
  /** Of the symmetric key. */
  readonly bits?: number;
  readonly certificate?: Certificate;
  readonly attributes?: readonly Buffer[];
}

/** `CONTENT/WRAP bits RECIPIENT`, or the error code and the end of its text. */
function decided(wish: Wish): string {
  const { symmetric, asymmetric, capabilities, now = NOT_BEFORE + 1, bits = 128 } = wish;
  const capability = (one: string | readonly [string, string]): Buffer =>
    typeof one === 'string' ? sequence(oid(one)) : sequence(oid(one[0]), sequence(oid(one[1])));
  const attributes = [
    ...(symmetric === undefined ? [] : [csrAttribute(OID.decryptKeyIdentifier, octetString(symmetric))]),
    ...(asymmetric === undefined ? [] : [csrAttribute(OID.asymmetricDecryptKeyIdentifier, octetString(asymmetric))]),
    ...(capabilities === undefined
      ? []
      : [csrAttribute(OID.smimeCapabilities, sequence(...capabilities.map(capability)))]),
    ...(wish.attributes ?? []),
  ];
  const { spki } = wish;
  const der = buildCsr(wish.key ?? key, { subject: commonName('x'), attributes, ...(spki && { spki }) });
  const settings: KeyProtectionSettings = {
    encryption: 'optional',
    password: undefined,
    symmetricKeys: new Map([[ID.toString('hex'), Buffer.alloc(bits / 8)]]),
    certificates: new Map(wish.certificate === undefined ? [] : [[ID.toString('hex'), wish.certificate]]),
  };
  try {
    const chosen = chooseProtection(settings, parseCsrWithoutProof(der), wish.identity ?? otpIdentity(), now);
    if (chosen.form !== 'enveloped') return chosen.form;
    const { contentBits, wrapBits, recipient } = chosen;
    return `${contentBits}/${wrapBits} ${recipient.kind === 'kek' ? 'kek' : recipient.rid.kind}`;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return `${String(error.code)}: ${error.message}`;
  }
}

const { aes128CBC, aes192CBC, aes256CBC, aes128Wrap, aes192Wrap, aes256Wrap, rsaEncryption, rsaOAEP } = OID;
const [RSA, P384] = [makeKey('rsa2048'), makeKey('P-384')];
const own = (of: TestKey) => ({ key: of, asymmetric: subjectKeyIdentifier(of.spki) });
const NO_OVERLAP = /^CAPABILITIES_WITHOUT_OVERLAP: /;

describe('the strongest algorithms that the capabilities list, and none that they leave out', () => {
  const kek = { symmetric: ID };
  test.each<[string, Wish, string | RegExp]>([
    ['no capabilities', own(key), '256/256 subjectKeyIdentifier'],
    ['no capabilities, a symmetric key', kek, '256/128 kek'],
    ['AES-128 and AES-192', { ...own(key), capabilities: [aes128CBC, aes192CBC] }, '192/256 subjectKeyIdentifier'],
    ['no AES in CBC mode', { ...own(key), capabilities: [aes256Wrap] }, NO_OVERLAP],
    ['a key wrap', { ...own(key), capabilities: [aes256CBC, aes128Wrap, aes192Wrap] }, '256/192 subjectKeyIdentifier'],
    [
      'a key wrap in the parameters',
      { ...own(key), capabilities: [aes256CBC, [OID.dhSinglePassStdDHSha256Kdf, aes128Wrap]] },
      '256/128 subjectKeyIdentifier',
    ],
    ['a symmetric key, its key wrap', { ...kek, capabilities: [aes256CBC, aes128Wrap, aes256Wrap] }, '256/128 kek'],
    ['a symmetric key, no key wrap', { ...kek, capabilities: [aes256CBC] }, '256/128 kek'],
    ['a symmetric key, another key wrap', { ...kek, capabilities: [aes256CBC, aes256Wrap] }, NO_OVERLAP],
    ['RSA, no key transport', { ...own(RSA), capabilities: [aes256CBC] }, '256/256 subjectKeyIdentifier'],
    ['RSA, OAEP', { ...own(RSA), capabilities: [aes256CBC, rsaEncryption, rsaOAEP] }, '256/256 subjectKeyIdentifier'],
    ['RSA, PKCS #1 v1.5 alone', { ...own(RSA), capabilities: [aes256CBC, rsaEncryption] }, NO_OVERLAP],
    ['EC is not RSA', { ...own(key), capabilities: [aes256CBC, rsaEncryption] }, '256/256 subjectKeyIdentifier'],
    ['P-256, SHA-1', { ...own(key), capabilities: [aes256CBC, OID.dhSinglePassStdDHSha1Kdf] }, /ECDH with SHA-256/],
    [
      'P-384, SHA-256',
      { ...own(P384), capabilities: [aes256CBC, OID.dhSinglePassStdDHSha256Kdf] },
      /ECDH with SHA-384/,
    ],
    [
      'P-384, SHA-384',
      { ...own(P384), capabilities: [aes256CBC, OID.dhSinglePassStdDHSha384Kdf] },
      '256/256 subjectKeyIdentifier',
    ],
  ])('%s', (_, wish, expected) => {
    if (typeof expected === 'string') expect(decided(wish)).toBe(expected);
    else expect(decided(wish)).toMatch(expected);
  });
});

describe('the key that the CSR names must be able to decrypt', () => {
  const client = async (usages: Parameters<typeof keyUsage>, kind: 'ec:P-256' | 'rsa:2048' | 'ed25519' = 'ec:P-256') =>
    parseCertificate((await makeClient('CN=x', maker, { kind, extensions: [keyUsage(...usages)] })).der);

  test.each<[string, () => Wish | Promise<Wish>, string]>([
    ['the CSR, Ed25519', () => own(makeKey('ed25519')), 'which cannot encrypt'],
    ['the CSR, ML-DSA', () => own(makeKey('ml-dsa-44')), 'which cannot encrypt'],
    [
      'a certificate, Ed25519',
      async () => ({ certificate: await client(['keyAgreement'], 'ed25519') }),
      'cannot encrypt',
    ],
    ['EC, signing', async () => ({ certificate: await client(['digitalSignature']) }), 'key usage keyAgreement'],
    ['EC, encipherment', async () => ({ certificate: await client(['keyEncipherment']) }), 'key usage keyAgreement'],
    ['RSA, agreement', async () => ({ certificate: await client(['keyAgreement'], 'rsa:2048') }), 'keyEncipherment'],
    ['RSA, encipherment', async () => ({ certificate: await client(['keyEncipherment'], 'rsa:2048') }), 'issuerAnd'],
    ['EC, agreement', async () => ({ certificate: await client(['keyAgreement']) }), 'issuerAnd'],
    [
      'a certificate from its first moment',
      async () => ({ certificate: await client(['keyAgreement']), now: NOT_BEFORE }),
      'issuerAnd',
    ],
    [
      'a certificate to its last moment',
      async () => ({ certificate: await client(['keyAgreement']), now: NOT_AFTER }),
      'issuerAnd',
    ],
    [
      'before its first moment',
      async () => ({ certificate: await client(['keyAgreement']), now: NOT_BEFORE - 1 }),
      'not valid now',
    ],
    [
      'after its last moment',
      async () => ({ certificate: await client(['keyAgreement']), now: NOT_AFTER + 1 }),
      'not valid now',
    ],
    ['RSA of 4096 bits', () => bigRsa(512, 0xfb), 'subjectKeyIdentifier'],
    ['RSA of more', () => bigRsa(513, 0xe9), 'more than 4096 bits'],
  ])('%s', async (_, make, expected) => {
    expect(decided({ asymmetric: ID, ...(await make()) })).toContain(expected);
  });

  /** The last octet leaves the modulus without a small factor. The CSR's signature is ignored. */
  function bigRsa(octets: number, last: number): Wish {
    const spki = rsaSpki(
      integer(Buffer.concat([Buffer.alloc(octets - 1, 0xff), Buffer.from([last])])),
      integer(65_537),
    );
    return { spki, asymmetric: subjectKeyIdentifier(spki) };
  }

  test("the requester's own certificate, by either identifier; nobody else's", async () => {
    const mine = await client(['keyAgreement']);
    const wish = { asymmetric: subjectKeyIdentifier(mine.spki) };
    expect(decided({ ...wish, identity: mtlsIdentity(mine) })).toBe('256/256 issuerAndSerialNumber');
    const extensions = [keyUsage('keyAgreement'), ski(maker.keys)];
    const named = parseCertificate((await makeClient('CN=x', maker, { extensions })).der);
    for (const asymmetric of [named.subjectKeyIdentifier ?? ID, subjectKeyIdentifier(named.spki)])
      expect(decided({ asymmetric, identity: mtlsIdentity(named) })).toBe('256/256 issuerAndSerialNumber');
    expect(decided({ ...wish, identity: mtlsIdentity(certificate) })).toMatch(/^KEY_IDENTIFIER_UNKNOWN/);
    expect(decided(wish)).toMatch(/^KEY_IDENTIFIER_UNKNOWN/);
  });

  test('two identifiers, an empty one, or one that is not an OCTET STRING are an error', () => {
    expect(decided({ symmetric: ID, asymmetric: ID })).toMatch(/^KEY_IDENTIFIER_AMBIGUOUS/);
    expect(decided({ symmetric: Buffer.alloc(0) })).toMatch(/^KEY_IDENTIFIER_MALFORMED/);
    expect(decided({ attributes: [csrAttribute(OID.decryptKeyIdentifier, integer(1))] })).toMatch(
      /^KEY_IDENTIFIER_MALFORMED/,
    );
    expect(decided({ attributes: [csrAttribute(OID.smimeCapabilities, integer(1))] })).toMatch(
      /^CAPABILITIES_MALFORMED/,
    );
  });
});

test('a key in the CSR that is no point of its curve cannot be named for decryption', () => {
  const spki = Buffer.from(makeKey().spki);
  spki[spki.length - 1] = (spki.at(-1) ?? 0) ^ 1;
  const attributes = [csrAttribute(OID.asymmetricDecryptKeyIdentifier, octetString(subjectKeyIdentifier(spki)))];
  const csr = parseCsrWithoutProof(buildCsr(key, { spki, subject: commonName('device-1'), attributes }));
  const none = { password: undefined, symmetricKeys: new Map<string, Buffer>(), certificates: new Map() };
  expect(() => chooseProtection({ ...none, encryption: 'required' }, csr, otpIdentity(), Date.now())).toThrow(
    'The key that the CSR names for decryption is not a usable key.',
  );
});
