/** Which certificates have the same holder (docs/guides/names.md). */
import { expect, test } from 'vitest';
import {
  certificateHolder,
  isOfHolder,
  isSameHolder,
  type CertificateHolder,
} from '../../src/auth/certificate-holder.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import {
  ecdsaTwin,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeClient,
  subjectAltName,
  type Issuer,
} from '../support/certificates.ts';
import { OID } from '../../src/pki/der/oids.ts';

const parsed = ({ der }: Issuer): Certificate => parseCertificate(der);
const withSan = (value: string) => ({
  extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth), subjectAltName({ kind: 'dns', value })],
});

const ca = await makeCa('CN=Devices');
const namesake = await makeCa('CN=Devices', { slot: 'namesake' });
const device = await makeClient('CN=device-1', ca, withSan('device-1.example'));
const renewed = await makeClient('CN=device-1', ca, { ...withSan('device-1.example'), slot: 'another key' });
const others: Readonly<Record<string, [Issuer, Issuer]>> = {
  'another subject': [await makeClient('CN=device-2', ca, withSan('device-1.example')), ca],
  'another subjectAltName': [await makeClient('CN=device-1', ca, withSan('device-2.example')), ca],
  'no subjectAltName': [await makeClient('CN=device-1', ca), ca],
  'a CA of the same name': [await makeClient('CN=device-1', namesake, withSan('device-1.example')), namesake],
};
const holder: CertificateHolder = { certificate: parsed(device), issuer: parsed(ca) };

test.each<[string, Certificate]>([
  ['itself', parsed(device)],
  ['its ECDSA twin', parseCertificate(ecdsaTwin(device.der))],
  ['its renewal', parsed(renewed)],
])('one holder: %s', async (_, certificate) => {
  expect(isSameHolder(holder, { certificate, issuer: parsed(ca) })).toBe(true);
  expect(await isOfHolder(holder, certificate)).toBe(true);
});

test.each(Object.entries(others))('another holder: %s', async (_, [certificate, issuer]) => {
  expect(isSameHolder(holder, { certificate: parsed(certificate), issuer: parsed(issuer) })).toBe(false);
  expect(await isOfHolder(holder, parsed(certificate))).toBe(false);
});

test('a certificate that is a trust anchor is its own holder, although it did not sign itself', async () => {
  const pinned = { certificate: parsed(device), issuer: parsed(device) };
  for (const der of [device.der, ecdsaTwin(device.der)])
    expect(await isOfHolder(pinned, parseCertificate(der))).toBe(true);
  expect(await isOfHolder(pinned, parsed(renewed))).toBe(false);
});

test('a certificate that is asked about under two issuers belongs to each of them once', () => {
  const [certificate, one, two] = [parsed(device), parsed(ca), parsed(namesake)];
  expect(isSameHolder({ certificate, issuer: one }, { certificate, issuer: two })).toBe(false);
  expect(isSameHolder({ certificate, issuer: one }, { certificate: parsed(renewed), issuer: one })).toBe(true);
});

test('a holder is named by the subject, or by the subjectAltNames if the subject is empty', async () => {
  expect(certificateHolder(parsed(device))).toBe('CN=device-1');
  const nameless = await makeClient('', ca, withSan('device-1.example'));
  expect(certificateHolder(parsed(nameless))).toBe('DNS:device-1.example');
});
