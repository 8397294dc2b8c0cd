import { writeFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { parseCsr, verifyCsr } from '../../../src/pki/pkcs10/csr.ts';
import { buildCsr } from '../../../src/pki/pkcs10/csr-builder.ts';
import { ipAddress, type GeneralName } from '../../../src/pki/x509/general-name.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { parsePublicKey } from '../../../src/pki/x509/public-key.ts';
import { KEY_KINDS, keyPair, spkiDer, type KeyKind } from '../../support/keys.ts';
import { opensslText, temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const NAMES: readonly GeneralName[] = [{ kind: 'dns', value: 'a.example' }, ipAddress('192.0.2.1')];

const built = (kind: KeyKind, subjectAltNames: readonly GeneralName[]): Promise<Buffer> =>
  buildCsr({
    subject: parseDistinguishedName('CN=device 1,O=Example\\, Inc.'),
    subjectAltNames,
    publicKey: parsePublicKey(spkiDer(keyPair(kind))),
    pkcs8: keyPair(kind).privateKey.export({ format: 'der', type: 'pkcs8' }),
  });

describe('RFC 2986: OpenSSL verifies the requests that are built', () => {
  test.each(KEY_KINDS)('%s', async (kind) => {
    const der = await built(kind, NAMES);
    writeFileSync(folder.file(`${kind}.der`), der);
    const text = opensslText([
      'req',
      '-inform',
      'DER',
      '-in',
      folder.file(`${kind}.der`),
      '-verify',
      '-noout',
      '-text',
    ]);
    expect(text).toContain('Subject: O = "Example, Inc.", CN = device 1');
    expect(text).toContain('DNS:a.example, IP Address:192.0.2.1');
    expect((await verifyCsr(parseCsr(der))).publicKey.spki).toEqual(spkiDer(keyPair(kind)));
  });

  test('without names there is no attribute', async () => {
    const csr = parseCsr(await built('ec:P-256', []));
    expect(csr.attributes).toEqual([]);
    expect(csr.subjectAltNames).toEqual([]);
  });
});
