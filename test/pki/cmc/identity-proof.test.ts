import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CmcError } from '../../../src/pki/cmc/cmc-error.ts';
import { KEYED_WITNESS, type KeyedWitness } from '../../../src/pki/cmc/controls.ts';
import { sameSecret, verifyIdentityProof, verifyPopLinkWitness } from '../../../src/pki/cmc/identity-proof.ts';
import { parseCertificateRequest, type CmcCertificateRequest } from '../../../src/pki/cmc/tagged-request.ts';
import { NULL, oid, printableString, sequence, setOf } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { buildCsr, makeKey } from '../../support/csr.ts';
import { buildCrmf } from './samples.ts';
import { createIdentityProof, createPopLinkWitness } from '../../support/cmc-secrets.ts';

const secret = Buffer.from('a shared sécret of more than 16', 'utf8');
const reqSequence = Buffer.from('30020500', 'hex');
const alone = { secret, identification: undefined };
const named = { secret, identification: 'gerät 7' };
const control = (value: KeyedWitness): Parameters<typeof verifyIdentityProof>[0] => ({
  name: 'identityProofV2',
  bodyPartID: 5,
  value,
});
const hashed = (...parts: readonly (Buffer | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const hmac = (key: Buffer, data: Buffer): Buffer => createHmac('sha256', key).update(data).digest();

describe('RFC 5272 §6.2: identityProofV2', () => {
  test('§6.2.1: is the MAC of the reqSequence under the hash of the secret', () => {
    const proof = createIdentityProof(reqSequence, alone);
    expect(proof.witness).toEqual(hmac(hashed(secret), reqSequence));
    expect(verifyIdentityProof(control(proof), reqSequence, alone)).toBe(true);
  });

  test('§6.2.3: with an identification, the hash is of the secret followed by it', () => {
    const proof = createIdentityProof(reqSequence, named);
    expect(proof.witness).toEqual(hmac(hashed(secret, 'gerät 7'), reqSequence));
    expect(verifyIdentityProof(control(proof), reqSequence, named)).toBe(true);
  });

  test.each(['sha256', 'sha384', 'sha512'] as const)('%s', (hash) => {
    const proof = createIdentityProof(reqSequence, named, hash);
    expect(verifyIdentityProof(control(proof), reqSequence, named)).toBe(true);
  });

  test('hash and MAC may use different hashes, and may have NULL for parameters', () => {
    const key = createHash('sha512').update(secret).digest();
    const proof = {
      keyAlgorithm: { oid: OID.sha512, parameters: NULL },
      macAlgorithm: { oid: OID.hmacWithSHA256, parameters: NULL },
      witness: hmac(key, reqSequence),
    };
    expect(verifyIdentityProof(control(proof), reqSequence, alone)).toBe(true);
  });

  test('another secret, another identification, none, other requests or a cut witness are refused', () => {
    const proof = createIdentityProof(reqSequence, named);
    const cut = { ...proof, witness: proof.witness.subarray(0, 31) };
    expect(verifyIdentityProof(control(proof), reqSequence, { ...named, secret: Buffer.from('x') })).toBe(false);
    expect(verifyIdentityProof(control(proof), reqSequence, { ...named, identification: 'gerät 8' })).toBe(false);
    expect(verifyIdentityProof(control(proof), reqSequence, alone)).toBe(false);
    expect(verifyIdentityProof(control(proof), Buffer.from('30020501', 'hex'), named)).toBe(false);
    expect(verifyIdentityProof(control(cut), reqSequence, named)).toBe(false);
  });

  test.each([
    ['SHA-1', { keyAlgorithm: { oid: OID.sha1 } }],
    ['HMAC-SHA-1', { macAlgorithm: { oid: OID.hmacWithSHA1 } }],
    ['a signature algorithm', { macAlgorithm: { oid: OID.ecdsaWithSHA256 } }],
    ['parameters', { keyAlgorithm: { oid: OID.sha256, parameters: sequence() } }],
  ])('%s is refused with badAlg', (_, changed) => {
    const proof = { ...createIdentityProof(reqSequence, alone), ...changed };
    expect(caught(() => verifyIdentityProof(control(proof), reqSequence, alone))).toMatchObject({
      rule: 'algorithm',
      failInfo: 'badAlg',
      bodyPartIDs: [5],
    });
  });
});

describe('RFC 5272 §6.3.1: popLinkWitnessV2', () => {
  const random = Buffer.alloc(64, 1);
  const attribute = (witness: Buffer): Buffer => sequence(oid(OID.popLinkWitnessV2), setOf(witness));
  const encoded = (witness: KeyedWitness): Buffer => KEYED_WITNESS.encode(witness);
  const pkcs10 = (...attributes: Buffer[]): CmcCertificateRequest =>
    parseCertificateRequest({ kind: 'tcr', bodyPartID: 3, der: buildCsr(makeKey(), { attributes }) });
  const crmf = (witness: Buffer): CmcCertificateRequest =>
    parseCertificateRequest({
      kind: 'crm',
      bodyPartID: 3,
      der: buildCrmf(makeKey(), { certReqId: 3, controls: [sequence(oid(OID.popLinkWitnessV2), witness)] }),
    });

  test('is the MAC of popLinkRandom under the hash of the secret, in a PKCS #10 or a CRMF request', () => {
    const witness = createPopLinkWitness(random, secret);
    expect(witness.witness).toEqual(hmac(hashed(secret), random));
    expect(verifyPopLinkWitness(pkcs10(attribute(encoded(witness))), random, named)).toBe(true);
    expect(verifyPopLinkWitness(crmf(encoded(witness)), random, named)).toBe(true);
  });

  test("Dogtag's form, with the identification behind the secret, is accepted", () => {
    const witness = { ...createPopLinkWitness(random, secret), witness: hmac(hashed(secret, 'gerät 7'), random) };
    expect(verifyPopLinkWitness(pkcs10(attribute(encoded(witness))), random, named)).toBe(true);
  });

  test('a request without one, with another secret or another random value is refused', () => {
    const request = pkcs10(attribute(encoded(createPopLinkWitness(random, secret))));
    expect(verifyPopLinkWitness(pkcs10(), random, named)).toBe(false);
    expect(verifyPopLinkWitness(request, random, { ...named, secret: Buffer.from('x') })).toBe(false);
    expect(verifyPopLinkWitness(request, Buffer.alloc(64, 2), named)).toBe(false);
  });

  test.each([
    ['no witness', sequence()],
    ['a string', printableString('x')],
  ])('%s in its place is refused, naming the request', (_, value) => {
    expect(caught(() => verifyPopLinkWitness(pkcs10(attribute(value)), random, named))).toMatchObject({
      rule: 'request-malformed',
      bodyPartIDs: [3],
    });
  });
});

test('RFC 5272 §6.11: secrets of any length are compared', () => {
  expect(sameSecret(Buffer.from('a'), Buffer.from('a'))).toBe(true);
  expect(sameSecret(Buffer.from('a'), Buffer.from('aa'))).toBe(false);
  expect(sameSecret(Buffer.alloc(0), Buffer.from('a'))).toBe(false);
});

function caught(run: () => unknown): CmcError {
  try {
    run();
  } catch (error) {
    if (error instanceof CmcError) return error;
    throw error;
  }
  throw new Error('was accepted');
}
