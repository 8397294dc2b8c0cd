import { expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { certificateMatchKeys, deviceMatchKey, fitsMatch, isSan } from '../../src/store/device-match.ts';
import type { DeviceMatch } from '../../src/store/device-store.ts';
import { dns, email, ip, makeCa, makeClient, subjectAltName, uri } from '../support/certificates.ts';

const maker = await makeCa('CN=Maker  Root,O=Example');
const { der } = await makeClient('CN=unit 7,serialNumber=4711,O=Example', maker, {
  extensions: [
    subjectAltName(dns('Unit-7.Example.com'), ip('2001:db8::1'), email('a@Example.com'), uri('urn:dev:mac:0024beffff')),
  ],
});
const certificate = parseCertificate(der);
const issuer = 'CN=maker root,O=EXAMPLE';
const fingerprint_sha256 = certificate.fingerprint;

test.each<[string, DeviceMatch]>([
  ['its issuer, however it is written', { issuer }],
  ['its fingerprint', { fingerprint_sha256 }],
  ['issuer and serialNumber', { issuer, serial_number: '4711' }],
  ['issuer and CN', { issuer, common_name: 'unit 7' }],
  ['issuer and a DNS name in another case', { issuer, san: 'DNS:unit-7.example.COM' }],
  ['issuer and an address in another form', { issuer, san: 'IP:2001:DB8:0:0::1' }],
  ['issuer and an email address', { issuer, san: 'email:a@Example.com' }],
  ['issuer and a URI', { issuer, san: 'URI:urn:dev:mac:0024beffff' }],
  [
    'everything',
    { issuer, serial_number: '4711', common_name: 'unit 7', san: 'DNS:unit-7.example.com', fingerprint_sha256 },
  ],
  ['fingerprint and CN', { common_name: 'unit 7', fingerprint_sha256 }],
])('contract §8.5: a match that gives %s finds its certificate', (_, match) => {
  expect(certificateMatchKeys(certificate)).toContain(deviceMatchKey(match));
  expect(fitsMatch(match, certificate)).toBe(true);
});

test.each<[string, DeviceMatch]>([
  ['another issuer', { issuer: 'CN=maker root' }],
  ['another serialNumber', { issuer, serial_number: '4712' }],
  ['a serialNumber that is its CN', { issuer, serial_number: 'unit 7' }],
  ['another CN', { issuer, common_name: 'unit 8' }],
  ['a CN in another case', { issuer, common_name: 'Unit 7' }],
  ['another name', { issuer, san: 'DNS:unit-8.example.com' }],
  ['a name of another kind', { issuer, san: 'URI:unit-7.example.com' }],
  ['one thing right and one wrong', { issuer, serial_number: '4711', common_name: 'unit 8' }],
  ['its fingerprint and another CN', { common_name: 'unit 8', fingerprint_sha256 }],
  ['another fingerprint', { fingerprint_sha256: '00'.repeat(32) }],
  ['neither an issuer nor a fingerprint', { common_name: 'unit 7', serial_number: '4711' }],
])('contract §8.5: a match that gives %s does not fit', (_, match) => {
  expect(fitsMatch(match, certificate)).toBe(false);
});

test('a certificate of very many names costs a bounded number of look-ups', async () => {
  const many = await makeClient('CN=many', maker, {
    extensions: [subjectAltName(...Array.from({ length: 500 }, (_, n) => dns(`n${n}.example.com`)))],
  });
  expect(certificateMatchKeys(parseCertificate(many.der)).length).toBeLessThan(200);
});

test.each(['DNS:a', 'IP:192.0.2.1', 'IP:::1', 'email:a@b', 'URI:urn:x'])('%s is a name', (text) => {
  expect(isSan(text)).toBe(true);
});

test.each(['a', 'dns:a', 'DNS:', 'DNS:a b', 'IP:a', 'other:00', ''])('%j is no name', (text) => {
  expect(isSan(text)).toBe(false);
});
