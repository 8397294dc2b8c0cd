/** A repeated request is recognized by its key, or by the requested protection of a generated one. */
import { expect, test } from 'vitest';
import { recognize } from '../../src/enrollment/recognition.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCsrWithoutProof } from '../../src/pki/pkcs10/csr.ts';
import { buildCsr, challengePassword, commonName, csrAttribute, makeKey, type TestKey } from '../support/csr.ts';

const keys = [makeKey(), makeKey()] as const;
const identifier = (type: string): Buffer => csrAttribute(type, octetString(Buffer.of(1)));

const keyOf = (key: TestKey, kind: 'own' | 'generated', ...attributes: readonly Buffer[]): string =>
  recognize(parseCsrWithoutProof(buildCsr(key, { subject: commonName('x'), attributes })), kind).key;

test('an own key counts; for a generated one, only which kind of key encrypts it', () => {
  const forms = [[], [identifier(OID.decryptKeyIdentifier)], [identifier(OID.asymmetricDecryptKeyIdentifier)]];
  const seen = forms.map((attributes) => {
    const [first, second] = keys.map((key) => keyOf(key, 'generated', ...attributes, challengePassword('one')));
    expect(second).toBe(first);
    return first;
  });
  expect(new Set(seen).size).toBe(3);
  const own = keys.map((key) => keyOf(key, 'own', identifier(OID.decryptKeyIdentifier)));
  expect(new Set([...seen, ...own]).size).toBe(5);
});
