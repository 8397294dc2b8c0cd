import { expect, test } from 'vitest';
import { encodeCertificatePolicies } from '../../../src/pki/x509/extensions.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { extensionText } from '../../../src/pki/x509/extension-text.ts';
import { parseGeneralNameText } from '../../../src/pki/x509/general-name.ts';
import { basicConstraints, extKeyUsage, keyUsage, subjectAltName } from '../../support/certificates.ts';

const kinds = [
  'DNS:a.example',
  'email:a@example',
  'URI:https://a.example/',
  'IP:192.0.2.1',
  'IP:2001:db8::1',
  'upn:\u00fc@a.example',
  'hardware_module:1.3.6.1.4.1.9:00ab',
  'registered_id:1.3.6.1',
  'other:1.2.3:0500',
];

test.each([
  [basicConstraints(false), ['not a CA']],
  [basicConstraints(true), ['CA']],
  [keyUsage('digitalSignature', 'keyAgreement'), ['digitalSignature', 'keyAgreement']],
  [extKeyUsage('1.3.6.1.5.5.7.3.2', '1.2.3.4'), ['clientAuth', '1.2.3.4']],
  [subjectAltName(...kinds.map(parseGeneralNameText)), kinds],
  [
    { oid: OID.issuerAltName, critical: false, value: Buffer.from('300fa40d300b3109300706035504030c00', 'hex') },
    ['CN='],
  ],
  [{ oid: OID.certificatePolicies, critical: false, value: encodeCertificatePolicies([{ oid: '1.2.3' }]) }, ['1.2.3']],
  [{ oid: OID.keyUsage, critical: false, value: Buffer.of(5, 0) }, ['0500']],
  [{ oid: '1.2.3', critical: false, value: Buffer.of(5, 0) }, ['0500']],
])('RFC 5280 §4.2: the text of %j', (extension, text) => {
  expect(extensionText(extension)).toEqual(text);
});
