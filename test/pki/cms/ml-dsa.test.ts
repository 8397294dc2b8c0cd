/** RFC 9882: ML-DSA in CMS, with the working group's examples. */
import { createHash, createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  parseSignedData,
  verifySignerInfo,
  buildSignedData,
  issuerAndSerialNumber,
  keySigner,
} from '../../../src/pki/cms/cms.ts';
import {
  contextConstructed,
  integer,
  octetString,
  oid,
  explicit,
  parseDer,
  sequence,
  setOf,
  tlv,
} from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { createSignature, defaultSignatureAlgorithm } from '../../../src/pki/x509/signature-algorithms.ts';
import { exampleCertificate, exampleDer, exampleFile, LEVELS } from '../../support/ml-dsa.ts';

const only = <T>([item, ...more]: readonly T[]): T => {
  if (item === undefined || more.length > 0) throw new Error('not exactly one');
  return item;
};
const privateKey = (level: string) => createPrivateKey(readFileSync(exampleFile(`ML-DSA-${level}-seed.priv`)));
const content = Buffer.from('what is signed\n');

/** SignedData by hand: a digest algorithm of the test's choice, with signed attributes or without. */
async function signed(level: string, digest: Buffer, messageDigest?: Buffer): Promise<Buffer> {
  const certificate = exampleCertificate(level);
  const algorithm = defaultSignatureAlgorithm(certificate.publicKey.keyType);
  if (algorithm === undefined) throw new Error('no algorithm');
  const attributes =
    messageDigest &&
    setOf(
      sequence(oid(OID.contentType), setOf(oid(OID.data))),
      sequence(oid(OID.messageDigest), setOf(octetString(messageDigest))),
    );
  const keyType = certificate.publicKey.keyType;
  const signature = await createSignature(algorithm, privateKey(level), keyType, attributes ?? content);
  const signer = sequence(
    integer(1),
    sequence(certificate.issuer.der, integer(Buffer.from(certificate.serialNumber, 'hex'))),
    digest,
    ...(attributes === undefined ? [] : [tlv(contextConstructed(0), parseDer(attributes).value)]),
    algorithm.der,
    octetString(signature),
  );
  const data = sequence(oid(OID.data), explicit(0, octetString(content)));
  return sequence(oid(OID.signedData), explicit(0, sequence(integer(1), setOf(digest), data, setOf(signer))));
}

async function isValid(der: Buffer, level: string): Promise<boolean> {
  const signedData = parseSignedData(der);
  return verifySignerInfo(signedData, only(signedData.signerInfos), exampleCertificate(level).publicKey);
}

describe.each(LEVELS)('RFC 9882: ML-DSA-%s', (level) => {
  test('Appendix B: the example with signed attributes verifies, and with another content it does not', async () => {
    const signedData = parseSignedData(exampleDer(`mldsa${level}-signed-attrs.pem`));
    const signer = only(signedData.signerInfos);
    const { publicKey } = exampleCertificate(level);
    await expect(verifySignerInfo(signedData, signer, publicKey)).resolves.toBe(true);
    await expect(verifySignerInfo({ ...signedData, content }, signer, publicKey)).resolves.toBe(false);
    const signature = Buffer.from(signer.signature);
    signature.writeUInt8(signature.readUInt8(0) ^ 1, 0);
    await expect(verifySignerInfo(signedData, { ...signer, signature }, publicKey)).resolves.toBe(false);
  });

  test('§3.3: what we sign has SHA-512, and verifies', async () => {
    const certificate = exampleCertificate(level);
    const signer = keySigner(privateKey(level), certificate.publicKey, issuerAndSerialNumber(certificate));
    expect(signer.digest).toBe('sha512');
    const signingTime = new Date();
    const der = await buildSignedData({ contentType: OID.data, content, signers: [signer], signingTime });
    await expect(isValid(der, level)).resolves.toBe(true);
  });

  test('§3.3: SHAKE256 is taken for the digest', async () => {
    const digest = createHash('shake256', { outputLength: 64 }).update(content).digest();
    await expect(isValid(await signed(level, sequence(oid(OID.shake256)), digest), level)).resolves.toBe(true);
  });

  test('§3.3: without signed attributes the digest algorithm says nothing', async () => {
    await expect(isValid(await signed(level, sequence(oid(OID.sha1))), level)).resolves.toBe(true);
  });

  test('a digest that is not accepted is refused with signed attributes', async () => {
    const digest = createHash('sha1').update(content).digest();
    const der = await signed(level, sequence(oid(OID.sha1)), digest);
    expect(() => parseSignedData(der)).toThrow('DigestAlgorithmIdentifier');
  });
});
