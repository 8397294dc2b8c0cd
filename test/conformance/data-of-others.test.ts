/** Certificates and requests of other software, which are read leniently (RFC 5280 §6.1, §7.1): what Estuary issues is strict. */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NULL, oid, printableString, sequence, Tag, tlv, utf8String } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { type Issuer, keyUsage, makeCa, makeCertificate, makeClient } from '../support/certificates.ts';
import { attribute, buildCsr, commonName, csrAttribute, makeKey, name, onTheWire } from '../support/csr.ts';
import { caSection, certificatesOf, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';

const text = (value: Buffer): string => `#${value.toString('hex')}`;
const NULL_ECDSA = sequence(oid(OID.ecdsaWithSHA256), NULL);
/** The CA of a former system, in the ways in which other software writes CA certificates. */
const ANCHORS: Readonly<Record<string, () => Promise<Issuer>>> = {
  '"&" in a PrintableString': () => makeCa(`CN=${text(printableString('Smith & Sons'))}`),
  '"@" in an IA5String, and Latin-1': () => makeCa(`CN=${text(tlv(Tag.IA5_STRING, Buffer.from('C@f\xe9', 'latin1')))}`),
  'an empty O': () => makeCa(`O=${text(utf8String(''))},CN=Old`),
  'version 1': () => makeCertificate({ subject: 'CN=Version 1', version: 1 }),
  'keyCertSign without basicConstraints': () =>
    makeCertificate({ subject: 'CN=No constraints', extensions: [keyUsage('keyCertSign', 'cRLSign')] }),
  'NULL in its algorithm': () => makeCa('CN=NULL', { algorithmDer: NULL_ECDSA }),
};
const anchors = new Map(
  await Promise.all(Object.entries(ANCHORS).map(async ([what, make]) => [what, await make()] as const)),
);

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      const pem = [...anchors.values()].map(({ der }) => encodePem('CERTIFICATE', der)).join('');
      writeFileSync(join(dir, 'old.pem'), pem);
      appendFileSync(join(dir, 'tls/client-anchors.pem'), pem);
      section(caSection(config), 'profile')['renewal_issuers'] = 'old.pem';
      section(config, 'est')['challenge_password'] = 'ignore';
    },
  });
});
afterAll(() => estuary.stop());

const issued = (answer: Answer) => {
  expect(answer.status, answer.text).toBe(200);
  const [der] = certificatesOf(answer);
  if (der === undefined) throw new Error('no certificate');
  return parseCertificate(der);
};

/** A device of the former system, which repeats the names of its certificate (RFC 7030 §4.2.2). */
async function renew(ca: Issuer, algorithmDer?: Buffer): Promise<Answer> {
  const subject = `CN=device,C=${text(utf8String('DE'))},O=${text(utf8String(''))}`;
  const device = await makeClient(subject, ca, algorithmDer === undefined ? {} : { algorithmDer });
  const client: ClientIdentity = { cert: encodePem('CERTIFICATE', device.der), key: pkcs8Pem(device.keys) };
  const csr = buildCsr(makeKey(), { subject: parseCertificate(device.der).subject.der });
  return estuary.enroll(onTheWire(csr), { client, path: 'simplereenroll' });
}

describe('a trust anchor of other software', () => {
  test.each([...anchors])('%s: its devices renew', async (_, ca) => {
    const { subject } = issued(await renew(ca));
    expect(subject.der).toEqual(
      name(attribute(OID.countryName, printableString('DE')), attribute(OID.commonName, utf8String('device'))),
    );
  });

  test('NULL in the algorithm of a device certificate', async () => {
    for (const ca of anchors.values()) issued(await renew(ca, NULL_ECDSA));
  });
});

async function enroll(csr: Buffer): Promise<Answer> {
  const { token } = await estuary.otp();
  return estuary.enroll(onTheWire(csr), { password: token });
}

describe('a request of other software', () => {
  const key = makeKey();

  test('"_" in a PrintableString is issued in a UTF8String', async () => {
    const subject = name(attribute(OID.commonName, printableString('dev_1')));
    expect(issued(await enroll(buildCsr(key, { subject }))).subject.der).toEqual(commonName('dev_1'));
  });

  test('a multi-valued RDN that is not sorted is sorted', async () => {
    const parts = [attribute(OID.organizationName, utf8String('b')), attribute(OID.commonName, utf8String('a'))];
    const { subject } = issued(await enroll(buildCsr(key, { subject: sequence(tlv(Tag.SET, ...parts)) })));
    expect(subject.der).toEqual(sequence(tlv(Tag.SET, ...parts.reverse())));
  });

  test('with challenge_password = "ignore", a challengePassword may be anything', async () => {
    for (const value of [printableString('a_b'), tlv(Tag.UTF8_STRING, Buffer.from([0xff])), NULL]) {
      const attributes = [csrAttribute(OID.challengePassword, value)];
      issued(await enroll(buildCsr(key, { subject: commonName('a'), attributes })));
    }
  });

  test('an empty value and a serialNumber with "_" get 400 that names both', async () => {
    const empty = await enroll(buildCsr(key, { subject: name(attribute(OID.organizationName, utf8String(''))) }));
    expect([empty.status, empty.text]).toEqual([400, "The CSR's subject has an empty O."]);
    const subject = name(attribute(OID.serialNumber, utf8String('a_b')));
    const wrong = await enroll(buildCsr(key, { subject }));
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain('serialNumber with "_" at position 2');
  });
});
