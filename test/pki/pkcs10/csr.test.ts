import { writeFileSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { parseCsr, verifyCsr } from '../../../src/pki/pkcs10/csr.ts';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { buildCsr, csrAttribute, dns, extension, extensionRequest, makeKey, san } from '../../support/csr.ts';
import { integer, NULL, sequence } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { KEY_KINDS, keyPair, pkcs8Pem, spkiDer } from '../../support/keys.ts';
import { openssl, opensslText, temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe("RFC 2986: OpenSSL's requests are read and their signatures verified", () => {
  beforeAll(() => {
    for (const kind of KEY_KINDS) writeFileSync(folder.file(`${kind}.key`), pkcs8Pem(keyPair(kind)), { mode: 0o600 });
  });

  test.each(KEY_KINDS)('%s', async (kind) => {
    const der = openssl([
      ...['req', '-new', '-key', folder.file(`${kind}.key`), '-outform', 'DER'],
      ...['-subj', '/C=DE/O=Example, Inc./CN=device 1'],
      ...['-addext', 'subjectAltName=DNS:a.example,IP:192.0.2.1,IP:2001:db8::1,email:a@b.example,URI:urn:x:y'],
    ]);
    const csr = parseCsr(der);
    expect(csr.publicKey.keyType).toBe(kind);
    expect(csr.publicKey.spki).toEqual(spkiDer(keyPair(kind)));
    expect(formatName(csr.subject)).toBe('CN=device 1,O=Example\\, Inc.,C=DE');
    expect(csr.subjectAltNames.map(formatGeneralName)).toEqual([
      'DNS:a.example',
      'IP:192.0.2.1',
      'IP:2001:db8::1',
      'email:a@b.example',
      'URI:urn:x:y',
    ]);
    expect(await verifyCsr(csr)).toBe(csr);
    expect(opensslText(['req', '-inform', 'DER', '-noout', '-pubkey'], csr.der)).toBe(
      csr.publicKey.keyObject.export({ format: 'pem', type: 'spki' }),
    );

    const tampered = Buffer.from(der);
    const at = tampered.indexOf('device 1');
    tampered.write('device 2', at);
    await expect(verifyCsr(parseCsr(tampered))).rejects.toMatchObject({ status: 400, code: 'CSR_SIGNATURE_INVALID' });
  });
});

test.each([0, 1, 2])('a CSR with version field %i is read, as OpenSSL and Go do', async (version) => {
  const der = buildCsr(makeKey(), { version: integer(version) });
  await verifyCsr(parseCsr(der));
});

describe('several extensionRequest attributes are joined', () => {
  const other = extension('1.2.3', NULL);
  const microsoft = (...extensions: Buffer[]): Buffer =>
    csrAttribute(OID.microsoftExtensionRequest, sequence(...extensions));
  test.each([
    ['two of them', [extensionRequest(san(dns('a'))), extensionRequest(other)]],
    ['one in each form', [extensionRequest(san(dns('a'))), microsoft(other)]],
    ['the same extension in both', [extensionRequest(san(dns('a')), other), microsoft(san(dns('a')))]],
    ['the same attribute twice', [extensionRequest(san(dns('a')), other), extensionRequest(san(dns('a')), other)]],
  ])('%s', (_, attributes) => {
    const { extensions, subjectAltNames } = parseCsr(buildCsr(makeKey(), { attributes }));
    expect(extensions.map(({ oid }) => oid)).toEqual([OID.subjectAltName, '1.2.3']);
    expect(subjectAltNames.map(formatGeneralName)).toEqual(['DNS:a']);
  });
});
