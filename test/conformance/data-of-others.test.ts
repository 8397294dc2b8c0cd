/** Certificates and requests of other software, which are read leniently (RFC 5280 §6.1, §7.1): what Estuary issues is strict. */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NULL, oid, printableString, sequence, Tag, tlv, utf8String } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import {
  encodeGeneralName,
  encodeGeneralNames,
  formatGeneralName,
  parseGeneralNameText,
} from '../../src/pki/x509/general-name.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import { type Issuer, keyUsage, makeCa, makeCertificate, makeClient, UNUSUAL_SANS } from '../support/certificates.ts';
import { crm, exchange, inShort, issuedBy, requestBy, tcr } from '../support/cmc.ts';
import { attribute, buildCsr, commonName, extensionRequest, makeKey, name, onTheWire, san } from '../support/csr.ts';
import { caSection, certificatesOf, type ClientIdentity, Estuary, itemsOf, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { openssl } from '../support/openssl.ts';

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

const SANS = [...UNUSUAL_SANS, 'dns:_est.a_b.example'];

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      const pem = [...anchors.values()].map(({ der }) => encodePem('CERTIFICATE', der)).join('');
      writeFileSync(join(dir, 'old.pem'), pem);
      appendFileSync(join(dir, 'tls/client-anchors.pem'), pem);
      section(caSection(config), 'profile')['renewal_issuers'] = 'old.pem';
      section(config, 'est')['challenge_password'] = 'ignore';
      Object.assign(section(caSection(config, 1), 'profile'), {
        mtls_subject: 'same',
        san: {
          allowed: [...SANS.map((text) => (text.startsWith('other:') ? 'other:1.2.3' : text.split(':')[0]))],
          ...{ required: ['upn'], upn: ['[a-z]+@a\\.example'], add: ['registered_id:1.3.6.1'], dns_underscore: true },
        },
      });
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

async function enroll(csr: Buffer, path = 'simpleenroll'): Promise<Answer> {
  const { token } = await estuary.otp();
  return estuary.enroll(onTheWire(csr), { password: token, path });
}

describe('a request of other software', () => {
  const key = makeKey();

  test('"_" in a PrintableString is issued in a UTF8String, C as UTF8String in a PrintableString, also by CMC', async () => {
    const asked = name(
      attribute(OID.countryName, utf8String('DE')),
      attribute(OID.commonName, printableString('dev_1')),
    );
    const strict = name(
      attribute(OID.countryName, printableString('DE')),
      attribute(OID.commonName, utf8String('dev_1')),
    );
    const csr = buildCsr(key, { subject: asked });
    const first = issued(await enroll(csr));
    const client = { cert: encodePem('CERTIFICATE', first.der), key: key.pem };
    const subject = `CN=${text(printableString('dev_1'))},C=${text(utf8String('DE'))}`;
    const subjects = [first.subject.der];
    for (const part of [tcr(1, csr), crm(1, buildCrmf(key, { subject }))]) {
      const byCmc = await exchange(estuary, requestBy(client, { reqSequence: [part] }), client);
      subjects.push(issuedBy(byCmc)[0]?.subject.der ?? expect.fail(inShort(byCmc).join()));
    }
    expect(subjects).toEqual([strict, strict, strict]);
  });

  test('a multi-valued RDN that is not sorted is sorted', async () => {
    const parts = [attribute(OID.organizationName, utf8String('b')), attribute(OID.commonName, utf8String('a'))];
    const { subject } = issued(await enroll(buildCsr(key, { subject: sequence(tlv(Tag.SET, ...parts)) })));
    expect(subject.der).toEqual(sequence(tlv(Tag.SET, ...parts.reverse())));
  });
});

describe('every kind of subjectAltName', () => {
  const key = makeKey();
  const withNames = (...texts: readonly string[]): Buffer => {
    const names = texts.map((text) => encodeGeneralName(parseGeneralNameText(text.replace(/^dns:/, 'DNS:'))));
    return buildCsr(key, { subject: commonName('alice'), attributes: [extensionRequest(san(...names))] });
  };
  const wanted = SANS.map((text) => text.replace(/^dns:/, 'DNS:')).sort();

  test('is issued, recorded, renewed and shown where the profile allows it', async () => {
    const [first = '', ...others] = SANS.filter((text) => !text.startsWith('registered_id'));
    const answer = await enroll(withNames(first, ...others), 'lab/simpleenroll');
    const certificate = issued(answer);
    expect(certificate.subjectAltNames.map(formatGeneralName).sort()).toEqual(wanted);
    const { json } = await estuary.admin('GET', `/admin/certificates?san=${encodeURIComponent('upn:alice')}`);
    expect(itemsOf(json).map(({ sans }) => (Array.isArray(sans) ? sans.toSorted() : sans))).toEqual([wanted]);

    const client = { cert: encodePem('CERTIFICATE', certificate.der), key: key.pem };
    const again = (...texts: readonly string[]): Promise<Answer> =>
      estuary.enroll(onTheWire(withNames(...texts)), { client, path: 'lab/simplereenroll' });
    expect(
      issued(await again(...SANS))
        .subjectAltNames.map(formatGeneralName)
        .sort(),
    ).toEqual(wanted);
    expect((await again(...others)).status).toBe(403);
    const value = encodeGeneralNames(wanted.map(parseGeneralNameText));
    const template = { subject: 'CN=alice', extensions: [{ oid: OID.subjectAltName, critical: false, value }] };
    for (const part of [tcr(1, withNames(...SANS)), crm(1, buildCrmf(key, template))]) {
      const byCmc = await exchange(estuary, requestBy(client, { reqSequence: [part] }), client, 'lab/fullcmc');
      expect(issuedBy(byCmc)[0]?.subjectAltNames.map(formatGeneralName).sort(), inShort(byCmc).join()).toEqual(wanted);
    }

    writeFileSync(join(estuary.dir, 'alice.pem'), client.cert);
    writeFileSync(
      join(estuary.dir, 'issuing.pem'),
      certificatesOf(await estuary.est('lab/cacerts'))
        .map((der) => encodePem('CERTIFICATE', der))
        .join(''),
    );
    const strict = [
      '-x509_strict',
      '-CAfile',
      join(estuary.dir, 'ca/root.pem'),
      '-untrusted',
      join(estuary.dir, 'issuing.pem'),
    ];
    openssl(['verify', ...strict, join(estuary.dir, 'alice.pem')]);
  });
});
