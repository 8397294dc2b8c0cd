/**
 * RFC 9908's examples, from the repository of the working group that wrote it (lamps-wg/lamps-rfc7030-csrattrs, folder
 * `examples`): what `[ca.csrattrs]` says of them comes out byte for byte.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { CsrAttributes } from '../../src/ca/csr-attributes.ts';
import type { CsrAttrsConfig } from '../../src/config/schema.ts';
import { encodeCsrAttrs, parseCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';
import { encodeExtensions } from '../../src/pki/x509/extensions.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { openssl, temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const NONE: CsrAttrsConfig = {
  challenge_password: false,
  extensions: [],
  oids: [],
  template: false,
  subject: [],
};
const encode = (config: Partial<CsrAttrsConfig>): Buffer =>
  new CsrAttributes({ ...NONE, ...config }, false).der ?? Buffer.alloc(0);

describe('RFC 9908 §5: the examples in the form of RFC 7030', () => {
  test.each<[string, Partial<CsrAttrsConfig>, string]>([
    [
      '§5.2 RFC 7030 original example',
      { key_type: 'ec:P-384', oids: ['1.3.6.1.1.1.1.22'], signature: 'ecdsaWithSHA384' },
      'MDIGCSqGSIb3DQEJBzASBgcqhkjOPQIBMQcGBSuBBAAiBgcrBgEBAQEWBggqhkjOPQQDAw==',
    ],
    [
      '§5.3 a specific subjectAltName',
      {
        key_type: 'ec:P-384',
        extensions: [
          {
            name: 'subjectAltName',
            // an otherName: AcpNodeName (RFC 8994 §6.2.2.1)
            value: ['3022a02006082b0601050507080aa0141612706f7461746f406578616d706c652e636f6d'],
          },
        ],
        signature: 'ecdsaWithSHA384',
      },
      'MGcGCSqGSIb3DQEJBzASBgcqhkjOPQIBMQcGBSuBBAAiMDwGCSqGSIb3DQEJDjEvMC0wKwYDVR0RBCQwIqAgBggrBgEFBQcICqAUFhJwb3RhdG9AZXhhbXBsZS5jb20GCCqGSM49BAMD',
    ],
    [
      '§5.4 a key of a specific size',
      { key_type: 'rsa:4096', signature: 'sha256WithRSAEncryption' },
      'MCkGCSqGSIb3DQEJBzARBgkqhkiG9w0BAQExBAICEAAGCSqGSIb3DQEBCw==',
    ],
    [
      '§5.5 a key on a specific curve',
      { key_type: 'ec:P-384', oids: ['2.5.4.5'], signature: 'ecdsaWithSHA384' },
      'MC4GCSqGSIb3DQEJBzASBgcqhkjOPQIBMQcGBSuBBAAiBgNVBAUGCCqGSM49BAMD',
    ],
    [
      '§5.6 specific extensions and attributes',
      {
        key_type: 'ec:P-521',
        oids: ['1.2.840.113549.1.9.20', '0.9.2342.19200300.100.1.5', '2.5.4.5'],
        signature: 'ecdsaWithSHA512',
      },
      'MEUGCSqGSIb3DQEJBzASBgcqhkjOPQIBMQcGBSuBBAAjBgkqhkiG9w0BCRQGCgmSJomT8ixkAQUGA1UEBQYIKoZIzj0EAwQ=',
    ],
  ])('%s', (_, config, base64) => {
    expect(encode({ challenge_password: true, ...config }).toString('base64')).toBe(base64);
  });

  test('§5.1 an ACP subjectAltName, which is critical', () => {
    const base64 =
      'MGgwZgYJKoZIhvcNAQkOMVkwVzBVBgNVHREBAf8ESzBJoEcGCCsGAQUFBwgKoDsWOXJmYzg5OTQrZmQ3MzlmYzIzYzM0NDAxMTIyMzM0NDU1MDAwMDAwMDArQGFjcC5leGFtcGxlLmNvbQ==';
    const value = Buffer.from(
      '3049a04706082b0601050507080aa03b1639726663383939342b66643733396663323363333434303131323233333434353530303030303030302b406163702e6578616d706c652e636f6d',
      'hex',
    );
    const extension = { oid: OID.subjectAltName, critical: true, value };
    const items = [{ oid: OID.extensionRequest, values: [encodeExtensions([extension])] }];
    expect(encodeCsrAttrs(items).toString('base64')).toBe(base64);
    expect(parseCsrAttrs(Buffer.from(base64, 'base64'))).toEqual(items);
  });
});

test('RFC 9908 §3.4: the example of a CertificationRequestInfoTemplate, as OpenSSL encodes its dump', () => {
  // The dump of the RFC, line by line.
  writeFileSync(
    folder.file('template.cnf'),
    `asn1 = SEQUENCE:template
[template]
version = INTEGER:0
subject = SEQUENCE:subject
key = IMPLICIT:0,SEQUENCE:key
attributes = IMPLICIT:1,SEQUENCE:attributes
[subject]
cn = SET:cn
dept = SET:dept
group = SET:group
[cn]
a = SEQUENCE:cn_attribute
[cn_attribute]
type = OID:commonName
[dept]
a = SEQUENCE:dept_attribute
[dept_attribute]
type = OID:organizationalUnitName
value = UTF8:myDept
[group]
a = SEQUENCE:group_attribute
[group_attribute]
type = OID:organizationalUnitName
value = UTF8:myGroup
[key]
algorithm = SEQUENCE:algorithm
[algorithm]
type = OID:id-ecPublicKey
curve = OID:prime256v1
[attributes]
extensions = SEQUENCE:extension_template
[extension_template]
type = OID:1.2.840.113549.1.9.16.2.62
values = SET:extension_values
[extension_values]
list = SEQUENCE:extensions
[extensions]
san = SEQUENCE:san
ku = SEQUENCE:ku
eku = SEQUENCE:eku
[san]
type = OID:subjectAltName
value = OCTWRAP,SEQUENCE:names
[names]
dns = IMPLICIT:2,IA5:www.myServer.com
ip = IMPLICIT:7,OCT:
[ku]
type = OID:keyUsage
critical = BOOLEAN:TRUE
value = OCTWRAP,FORMAT:BITLIST,BITSTRING:0,4
[eku]
type = OID:extendedKeyUsage
`,
  );
  openssl(['asn1parse', '-noout', '-genconf', folder.file('template.cnf'), '-out', folder.file('template.der')]);
  const der = encode({
    template: true,
    subject: [{ CN: '' }, { OU: 'myDept' }, { OU: 'myGroup' }],
    key_type: 'ec:P-256',
    extensions: [
      { name: 'subjectAltName', value: [`30148210${Buffer.from('www.myServer.com').toString('hex')}8700`] },
      { name: 'keyUsage', value: ['digitalSignature', 'keyAgreement'] },
      { name: 'extKeyUsage' },
    ],
  });
  const [templateItem] = parseCsrAttrs(der).filter(({ oid }) => oid === OID.certificationRequestInfoTemplate);
  expect(templateItem?.values).toEqual([readFileSync(folder.file('template.der'))]);
});
