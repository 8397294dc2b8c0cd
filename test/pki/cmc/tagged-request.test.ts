import { sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CmcError } from '../../../src/pki/cmc/cmc-error.ts';
import {
  requestOfSigner,
  parseCertificateRequest,
  verifyProofOfPossession,
  type CmcCertificateRequest,
} from '../../../src/pki/cmc/tagged-request.ts';
import {
  parseSignedData,
  verifySignerInfo,
  type SignedData,
  buildSignedData,
  keySigner,
} from '../../../src/pki/cms/cms.ts';
import {
  NULL,
  bitString,
  explicit,
  integer,
  octetString,
  oid,
  parseDer,
  sequence,
  tlv,
} from '../../../src/pki/der/der.ts';
import { encodeSubjectAltName, encodeSubjectKeyIdentifier, type Extension } from '../../../src/pki/x509/extensions.ts';
import { formatName, parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { ALGORITHM, buildCsr, challengePassword, makeKey, type TestKey } from '../../support/csr.ts';
import { buildCrmf, REG_INFO, type CrmfOptions } from './samples.ts';

const altName: Extension = {
  oid: OID.subjectAltName,
  critical: false,
  value: encodeSubjectAltName([{ kind: 'dns', value: 'a.example' }]),
};
const crmf = (options: CrmfOptions = {}, key: TestKey = makeKey()): CmcCertificateRequest =>
  parseCertificateRequest({ kind: 'crm', bodyPartID: 1, der: buildCrmf(key, options) });

async function caught(run: () => unknown): Promise<CmcError> {
  try {
    await run();
  } catch (error) {
    if (error instanceof CmcError) return error;
    throw error;
  }
  throw new Error('was accepted');
}

describe('RFC 5272 §3.2.1.2: certification requests', () => {
  test('a PKCS #10 request is read and proves possession by its signature', async () => {
    const key = makeKey();
    const der = buildCsr(key, { attributes: [challengePassword('secret')] });
    const request = parseCertificateRequest({ kind: 'tcr', bodyPartID: 7, der });
    expect(request).toMatchObject({ kind: 'pkcs10', bodyPartID: 7, challengePassword: 'secret' });
    expect(request.publicKey.spki).toEqual(key.spki);
    const proof = await verifyProofOfPossession(request);
    expect(proof.method === 'signature' && proof.csr?.der).toEqual(der);
  });

  test('a CRMF request is read into the same shape, and proves possession by its signature', async () => {
    const key = makeKey();
    const control = sequence(oid('1.2.3'), integer(4));
    const request = crmf({ subject: 'CN=device,O=Example', extensions: [altName], controls: [control] }, key);
    expect(formatName(request.subject)).toBe('CN=device,O=Example');
    expect(request).toMatchObject({
      kind: 'crmf',
      extensions: [altName],
      subjectAltNames: [{ kind: 'dns', value: 'a.example' }],
      attributes: [{ oid: '1.2.3', values: [integer(4)] }],
      challengePassword: undefined,
    });
    expect(request.publicKey.spki).toEqual(key.spki);
    expect(await verifyProofOfPossession(request)).toEqual({ method: 'signature', csr: undefined });
  });

  test('an empty subject is accepted where it is present, as the NULL name', () => {
    expect(crmf({ subject: '' }).subject.rdns).toEqual([]);
  });

  test('raVerified is reported, not believed', async () => {
    expect(await verifyProofOfPossession(crmf({ popo: Buffer.of(0x80, 0) }))).toEqual({ method: 'raVerified' });
  });

  const spki = makeKey().spki;
  const publicKey = tlv(0xa6, parseDer(spki).value);
  const subject = explicit(5, parseDistinguishedName('CN=x').der);

  test.each<[string, CrmfOptions, string]>([
    ['without a subject', { fields: [publicKey] }, 'has no subject'],
    ['without a public key', { fields: [subject] }, 'has no public key'],
    ['with regInfo', { regInfo: REG_INFO }, 'regInfo'],
    ['with a serial number', { before: [tlv(0x81, Buffer.of(1))] }, 'serialNumber'],
    ['with a signing algorithm', { before: [tlv(0xa2, oid(OID.ecdsaWithSHA256))] }, 'signingAlg'],
    ['of version 1', { before: [tlv(0x80, Buffer.of(0))] }, 'version'],
    ['with an extension twice', { extensions: [altName, altName] }, 'more than once'],
    [
      'with a control twice',
      { controls: [sequence(oid('1.2.3'), integer(1)), sequence(oid('1.2.3'), integer(2))] },
      'more than once',
    ],
    ['with a subject that is no name', { fields: [explicit(5, integer(1)), publicKey] }, 'Name'],
    ['with an unknown proof of possession', { popo: tlv(0xa4, integer(1)) }, 'ProofOfPossession'],
    ['with raVerified that is not NULL', { popo: tlv(0x80, Buffer.of(1)) }, 'raVerified'],
    ['with invalid validity', { before: [tlv(0xa4, explicit(0, integer(1)))] }, 'notBefore'],
  ])('a CRMF request %s is refused, naming its body part', async (_, options, text) => {
    const error = await caught(() => crmf(options));
    expect(error).toMatchObject({ rule: 'request-malformed', failInfo: 'badRequest', bodyPartIDs: [1] });
    expect(error.message).toContain(text);
  });

  test.each([
    ['a key that is too small', { fields: [subject, tlv(0xa6, parseDer(makeKey('rsa1024').spki).value)] }],
    [
      'a key on a curve that is not supported',
      { fields: [subject, tlv(0xa6, parseDer(makeKey('secp256k1').spki).value)] },
    ],
  ])('a CRMF request with %s is refused with badAlg', async (_, options) => {
    expect(await caught(() => crmf(options))).toMatchObject({ rule: 'algorithm', failInfo: 'badAlg' });
  });

  test.each<[string, CrmfOptions, string]>([
    ['without one', { popo: null }, 'popRequired'],
    ['for an encryption key', { popo: explicit(2, tlv(0x81, Buffer.of(1))) }, 'popRequired'],
    ['by key agreement', { popo: explicit(3, tlv(0x81, Buffer.of(1))) }, 'popRequired'],
    ['over something else', { signed: Buffer.from('other') }, 'popFailed'],
    [
      'with poposkInput',
      { popo: tlv(0xa1, tlv(0xa0, explicit(0, subject), spki), ALGORITHM.ecdsaSha256, bitString(Buffer.alloc(70))) },
      'popFailed',
    ],
    ['by SHA-1', { popo: tlv(0xa1, ALGORITHM.ecdsaSha1, bitString(Buffer.alloc(70))) }, 'badAlg'],
    ['by another kind of key', { popo: tlv(0xa1, ALGORITHM.rsaSha256, bitString(Buffer.alloc(256))) }, 'popFailed'],
  ])('RFC 4211 §4: a proof of possession %s is refused', async (_, options, failInfo) => {
    const request = crmf(options);
    expect(await caught(() => verifyProofOfPossession(request))).toMatchObject({ failInfo, bodyPartIDs: [1] });
  });

  test("a CRMF request's signature in NSS's form, with a NULL for ECDSA's parameters, proves possession", async () => {
    const key = makeKey();
    const { info } = crmf({}, key);
    const signature = bitString(sign('sha256', info, key.privateKey));
    const popo = tlv(0xa1, sequence(oid(OID.ecdsaWithSHA256), NULL), signature);
    expect(await verifyProofOfPossession(crmf({ popo }, key))).toMatchObject({ method: 'signature' });
  });

  test('a PKCS #10 request with an altered signature is rejected with popFailed, a malformed one with badRequest', async () => {
    const der = buildCsr(makeKey());
    der.writeUInt8(der.readUInt8(der.length - 1) ^ 1, der.length - 1);
    const request = parseCertificateRequest({ kind: 'tcr', bodyPartID: 5, der });
    expect(await caught(() => verifyProofOfPossession(request))).toMatchObject({
      rule: 'proof-of-possession',
      failInfo: 'popFailed',
      bodyPartIDs: [5],
    });
    expect(await caught(() => parseCertificateRequest({ kind: 'tcr', bodyPartID: 6, der: sequence() }))).toMatchObject({
      rule: 'request-malformed',
      failInfo: 'badRequest',
      bodyPartIDs: [6],
    });
  });

  test('a PKCS #10 request signed with SHA-1 is refused with badAlg', async () => {
    const der = buildCsr(makeKey(), { algorithm: ALGORITHM.ecdsaSha1 });
    expect(await caught(() => parseCertificateRequest({ kind: 'tcr', bodyPartID: 5, der }))).toMatchObject({
      rule: 'algorithm',
      failInfo: 'badAlg',
    });
  });
});

describe('RFC 5272 §3.2: a message signed with the requested key', () => {
  const key = makeKey();
  const identifier = subjectKeyIdentifier(key.spki);
  const ski: Extension = {
    oid: OID.subjectKeyIdentifier,
    critical: false,
    value: encodeSubjectKeyIdentifier(identifier),
  };
  const signed = async (...identifiers: Buffer[]): Promise<SignedData> =>
    parseSignedData(
      await buildSignedData({
        contentType: OID.pkiData,
        content: Buffer.from('content'),
        signers: identifiers.map((keyIdentifier) =>
          keySigner(key.privateKey, parsePublicKey(key.spki), { kind: 'subjectKeyIdentifier', keyIdentifier }),
        ),
        signingTime: new Date(),
      }),
    );

  test('names its signer by the Subject Key Identifier that the request asks for', async () => {
    const request = crmf({ extensions: [ski] }, key);
    const message = await signed(identifier);
    expect(requestOfSigner(message, [crmf(), request])).toBe(request);
    const [signer] = message.signerInfos;
    expect(signer && (await verifySignerInfo(message, signer, request.publicKey))).toBe(true);
    expect(signer && (await verifySignerInfo(message, signer, crmf().publicKey))).toBe(false);
  });

  test('a request without that extension does not verify the message', async () => {
    expect(requestOfSigner(await signed(identifier), [crmf({}, key)])).toBeUndefined();
    const broken = { ...ski, value: octetString(Buffer.of()).subarray(1) };
    expect(requestOfSigner(await signed(identifier), [crmf({ extensions: [broken] }, key)])).toBeUndefined();
  });

  test('has exactly one SignerInfo', async () => {
    const request = crmf({ extensions: [ski] }, key);
    const message = await signed(identifier, Buffer.from('other'));
    expect(await caught(() => requestOfSigner(message, [request]))).toMatchObject({ failInfo: 'badMessageCheck' });
  });

  test('is not two requests at once', async () => {
    const requests = [crmf({ extensions: [ski] }, key), crmf({ extensions: [ski], certReqId: 2 })];
    const message = await signed(identifier);
    expect(await caught(() => requestOfSigner(message, requests))).toMatchObject({ failInfo: 'badMessageCheck' });
  });
});
