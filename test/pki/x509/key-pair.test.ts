/** RFC 9881: ML-DSA in X.509, with the working group's examples. */
import { createPublicKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { usagesOfKey } from '../../../src/ca/local/key-usage.ts';
import { FileError, readPrivateKey } from '../../../src/config/material/reader.ts';
import { bitString, NULL, oid, parseDer, sequence } from '../../../src/pki/der/der.ts';
import { verifyCertificateSignature } from '../../../src/pki/x509/certificate.ts';
import { ML_DSA } from '../../../src/pki/x509/key-pair.ts';
import { parsePublicKey, publicKeyProblem } from '../../../src/pki/x509/public-key.ts';
import {
  algorithmFitsKey,
  createSignature,
  defaultSignatureAlgorithm,
  parseSignatureAlgorithm,
  verifySignature,
} from '../../../src/pki/x509/signature-algorithms.ts';
import { exampleCertificate, exampleDer, exampleFile, LEVELS } from '../../support/ml-dsa.ts';

describe.each(LEVELS)('RFC 9881: the example of ML-DSA-%s', (level) => {
  test('§3: its certificate is read, and its signature verified', async () => {
    const certificate = exampleCertificate(level);
    expect(certificate.publicKey).toMatchObject({ algorithm: 'ml-dsa', keyType: `ml-dsa:${level}` });
    expect(publicKeyProblem(certificate.publicKey)).toBeUndefined();
    await expect(verifyCertificateSignature(certificate, certificate)).resolves.toBe(true);
  });

  test('§3: a certificate with another octet is not', async () => {
    const { signatureAlgorithm, publicKey, tbs, signature } = exampleCertificate(level);
    const other = Buffer.from(tbs);
    other.writeUInt8(other.readUInt8(other.length - 1) ^ 1, other.length - 1);
    const algorithm = parseSignatureAlgorithm(signatureAlgorithm);
    await expect(verifySignature(algorithm, publicKey, other, signature)).resolves.toBe(false);
  });

  test('§4: its public key is the one of the certificate', () => {
    expect(exampleDer(`ML-DSA-${level}.pub`)).toEqual(exampleCertificate(level).spki);
  });

  test.each(['seed', 'expanded', 'both'])('§6: its private key in the form %s signs', async (form) => {
    const key = await readPrivateKey(exampleFile(`ML-DSA-${level}-${form}.priv`));
    const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
    expect(spki).toEqual(exampleCertificate(level).spki);
    const publicKey = parsePublicKey(spki);
    const algorithm = defaultSignatureAlgorithm(publicKey.keyType);
    if (algorithm === undefined) throw new Error('no algorithm');
    expect(algorithm).toMatchObject({ name: `ML-DSA-${level}`, hash: undefined });
    const data = Buffer.from('what is signed');
    const signature = await createSignature(algorithm, key, publicKey.keyType, data);
    await expect(verifySignature(algorithm, publicKey, data, signature)).resolves.toBe(true);
    await expect(verifySignature(algorithm, publicKey, Buffer.from('another'), signature)).resolves.toBe(false);
  });

  test('§5: the key signs and establishes nothing', () => {
    expect(usagesOfKey(exampleCertificate(level).publicKey)).toEqual(['digitalSignature', 'nonRepudiation']);
  });
});

test.each(['bad-ML-DSA-44-1', 'bad-ML-DSA-44-2', 'bad-ML-DSA-44-3'])(
  'RFC 9881 §6: the inconsistent private key %s is refused',
  async (name) => {
    await expect(readPrivateKey(exampleFile(`${name}.priv`))).rejects.toBeInstanceOf(FileError);
  },
);

describe('RFC 9881 §2', () => {
  test.each(ML_DSA)('parameters with $name are rejected, in a key and in a signature', ({ oid: dotted, publicKey }) => {
    const key = sequence(sequence(oid(dotted), NULL), bitString(Buffer.alloc(publicKey)));
    expect(() => parsePublicKey(key)).toThrow(/parameters: present/);
    expect(() => parseSignatureAlgorithm(sequence(oid(dotted), NULL))).toThrow(/parameters: unexpected/);
  });

  test.each(ML_DSA)('a key of $name with an octet too few or too many is refused', ({ oid: dotted, publicKey }) => {
    for (const octets of [publicKey - 1, publicKey + 1])
      expect(() => parsePublicKey(sequence(sequence(oid(dotted)), bitString(Buffer.alloc(octets))))).toThrow(
        'wrong length',
      );
  });

  test('a signature of one parameter set does not fit the key of another', () => {
    const key = exampleCertificate('65').publicKey;
    const fits = ML_DSA.map(({ keyType }) => {
      const algorithm = defaultSignatureAlgorithm(keyType);
      return algorithm !== undefined && algorithmFitsKey(algorithm, key);
    });
    expect(fits).toEqual([false, true, false]);
  });

  test('the signature algorithm of each is its OID alone', () => {
    for (const { keyType, oid: dotted } of ML_DSA)
      expect(parseDer(defaultSignatureAlgorithm(keyType)?.der ?? Buffer.alloc(0)).raw).toEqual(sequence(oid(dotted)));
  });
});
