/** RFC 9881 §6: the forms of a generated ML-DSA private key, held to the working group's examples. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { KeyGenerator } from '../../src/enrollment/key-generation.ts';
import { inPrivateKeyForm } from '../../src/enrollment/ml-dsa-private-key.ts';
import { ML_DSA } from '../../src/pki/x509/key-pair.ts';
import { exampleDer } from '../support/ml-dsa.ts';

const FORMS = ['seed', 'expanded', 'both'] as const;

describe.each(ML_DSA)('RFC 9881 §6: a private key of $name', (parameters) => {
  test.each(FORMS)('in the form %s is that of the example', async (form) => {
    const seed = exampleDer(`${parameters.name}-seed.priv`);
    await expect(inPrivateKeyForm(seed, parameters, form)).resolves.toEqual(
      exampleDer(`${parameters.name}-${form}.priv`),
    );
  });

  test('is zeroed where another form replaces it', async () => {
    const seed = exampleDer(`${parameters.name}-seed.priv`);
    await inPrivateKeyForm(seed, parameters, 'expanded');
    expect(seed).toEqual(Buffer.alloc(seed.length));
  });
});

test.each(FORMS)('a generated key in the form %s belongs to its public key', async (form) => {
  const key = await new KeyGenerator(form).generate('ml-dsa:44');
  const read = createPrivateKey({ key: key.pkcs8, format: 'der', type: 'pkcs8' });
  expect(createPublicKey(read).export({ format: 'der', type: 'spki' })).toEqual(key.publicKey.spki);
  key.dispose();
  expect(key.pkcs8).toEqual(Buffer.alloc(key.pkcs8.length));
});
