import { expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import {
  certificateMatchKeys,
  deviceMatchKey,
  fitsMatch,
  isSan,
  type DeviceMatch,
} from '../../src/store/device-match.ts';
import { spkiHash } from '../../src/pki/x509/public-key.ts';
import type { IssuedCertificate } from '../../src/store/certificate-store.ts';
import { dns, ecdsaTwin, email, ip, makeCa, makeClient, subjectAltName, uri } from '../support/certificates.ts';

const maker = await makeCa('CN=Maker  Root,O=Example');
const { der } = await makeClient('CN=unit 7,serialNumber=4711,O=Example', maker, {
  extensions: [
    subjectAltName(dns('Unit-7.Example.com'), ip('2001:db8::1'), email('a@Example.com'), uri('urn:dev:mac:0024beffff')),
  ],
});
const presented: IssuedCertificate = { certificate: parseCertificate(der), issuer: parseCertificate(maker.der) };
const issuer_spki_sha256 = spkiHash(parseCertificate(maker.der));
const fingerprint_sha256 = presented.certificate.fingerprint;
const twin = parseCertificate(ecdsaTwin(der));

test.each<[string, DeviceMatch]>([
  ["its issuer's key", { issuer_spki_sha256 }],
  ['its fingerprint', { fingerprint_sha256 }],
  ['the fingerprint of its ECDSA twin', { fingerprint_sha256: twin.fingerprint }],
  ['issuer and serialNumber', { issuer_spki_sha256, serial_number: '4711' }],
  ['issuer and CN', { issuer_spki_sha256, common_name: 'unit 7' }],
  ['issuer and a DNS name in another case', { issuer_spki_sha256, san: 'DNS:unit-7.example.COM' }],
  ['issuer and an address in another form', { issuer_spki_sha256, san: 'IP:2001:DB8:0:0::1' }],
  ['issuer and an email address', { issuer_spki_sha256, san: 'email:a@Example.com' }],
  ['issuer and a URI', { issuer_spki_sha256, san: 'URI:urn:dev:mac:0024beffff' }],
  [
    'everything',
    {
      ...{ issuer_spki_sha256, serial_number: '4711', common_name: 'unit 7', fingerprint_sha256 },
      san: 'DNS:unit-7.example.com',
    },
  ],
  ['fingerprint and CN', { common_name: 'unit 7', fingerprint_sha256 }],
])('a match that gives %s finds its certificate and the ECDSA twin', (_, match) => {
  for (const one of [presented, { ...presented, certificate: twin }]) {
    expect(certificateMatchKeys(one)).toContain(deviceMatchKey(match));
    expect(fitsMatch(match, one)).toBe(true);
  }
});

test('a CA of the same name with another key does not fit', async () => {
  const namesake = parseCertificate((await makeCa('CN=Maker  Root,O=Example', { slot: 'another' })).der);
  const match = { issuer_spki_sha256, serial_number: '4711' };
  for (const issuer of [namesake, undefined]) {
    expect(certificateMatchKeys({ ...presented, issuer })).not.toContain(deviceMatchKey(match));
    expect(fitsMatch(match, { ...presented, issuer })).toBe(false);
    expect(fitsMatch({ fingerprint_sha256 }, { ...presented, issuer })).toBe(true);
  }
});

test.each<[string, DeviceMatch]>([
  ['another issuer', { issuer_spki_sha256: '00'.repeat(32) }],
  ['another serialNumber', { issuer_spki_sha256, serial_number: '4712' }],
  ['a serialNumber that is its CN', { issuer_spki_sha256, serial_number: 'unit 7' }],
  ['another CN', { issuer_spki_sha256, common_name: 'unit 8' }],
  ['a CN in another case', { issuer_spki_sha256, common_name: 'Unit 7' }],
  ['another name', { issuer_spki_sha256, san: 'DNS:unit-8.example.com' }],
  ['a name of another kind', { issuer_spki_sha256, san: 'URI:unit-7.example.com' }],
  ['one thing right and one wrong', { issuer_spki_sha256, serial_number: '4711', common_name: 'unit 8' }],
  ['its fingerprint and another CN', { common_name: 'unit 8', fingerprint_sha256 }],
  ['another fingerprint', { fingerprint_sha256: '00'.repeat(32) }],
  ['neither an issuer nor a fingerprint', { common_name: 'unit 7', serial_number: '4711' }],
])('a match that gives %s does not fit', (_, match) => {
  expect(fitsMatch(match, presented)).toBe(false);
});

test('a certificate of very many names costs a bounded number of look-ups', async () => {
  const many = await makeClient('CN=many', maker, {
    extensions: [subjectAltName(...Array.from({ length: 500 }, (_, n) => dns(`n${n}.example.com`)))],
  });
  expect(certificateMatchKeys({ ...presented, certificate: parseCertificate(many.der) }).length).toBeLessThan(200);
});

test.each(['DNS:a', 'IP:192.0.2.1', 'IP:::1', 'email:a@b', 'URI:urn:x'])('%s is a name', (text) => {
  expect(isSan(text)).toBe(true);
});

test.each(['a', 'dns:a', 'DNS:', 'DNS:a b', 'IP:a', 'other:00', ''])('%j is no name', (text) => {
  expect(isSan(text)).toBe(false);
});
