/** RFC 7030 §4.2.1, §4.2.2 and RFC 6402 §2.8: other names for a client that has a certificate (ChangeSubjectName). */
import { webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { fromBER, Sequence } from 'asn1js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  attribute,
  buildCsr,
  commonName,
  csrAttribute,
  dns,
  email,
  extensionRequest,
  makeKey,
  name,
  onTheWire,
  san,
  type TestKey,
} from '../support/csr.ts';
import { caSection, certificatePem, Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve, requestId, requestsOf } from '../support/queued-requests.ts';
import { expectMatch, PRE_SHARED, readPkcs8, readServerKey, usePreSharedSecret } from '../support/server-key.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { NULL, sequence, tlv, utf8String } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';

let estuary: Estuary;
const key = makeKey();
let device: ClientIdentity;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      usePreSharedSecret(config, dir);
      const profile = section(caSection(config), 'profile');
      profile['allow_subject_change'] = true;
      profile['subject'] = { allowed: ['CN', 'O'], patterns: { CN: '[a-z0-9-]+' } };
      profile['san'] = { allowed: ['dns'], dns: ['.*\\.example'] };
      section(config, 'otp')['max_failures'] = 50;
    },
  });
  device = await estuary.enrolled(key, 'old', ['old.example']);
});
afterAll(() => estuary.stop());

/** CN=`cn` and DNS names, as ChangeSubjectName has them. */
const names = (cn: string, ...hosts: string[]): Buffer => sequence(commonName(cn), sequence(...hosts.map(dns)));

interface Parts {
  readonly from?: TestKey;
  readonly subject?: Buffer;
  readonly hosts?: readonly string[];
}

/** A request of CN=old for other names. */
function wire(
  change: Buffer,
  { from = key, subject = commonName('old'), hosts = ['old.example'] }: Parts = {},
): string {
  const own = hosts.length === 0 ? [] : [extensionRequest(san(...hosts.map(dns)))];
  return onTheWire(buildCsr(from, { subject, attributes: [...own, csrAttribute(OID.changeSubjectName, change)] }));
}
const reenroll = (body: string, client = device): Promise<Answer> =>
  estuary.enroll(body, { client, path: 'simplereenroll' });
const certificate = (answer: Answer): X509Certificate => {
  expect(answer.status, answer.text).toBe(200);
  return new X509Certificate(certificatePem(answer));
};

describe('RFC 7030 §4.2.2: simplereenroll with ChangeSubjectName', () => {
  test('the new certificate has the new names and nothing of the old ones; it renews itself', async () => {
    const renewed = certificate(await reenroll(wire(names('new-1', 'new-1.example', 'more.example'))));
    expect([renewed.subject, renewed.subjectAltName]).toEqual(['CN=new-1', 'DNS:new-1.example, DNS:more.example']);
    const own = { from: key, subject: commonName('new-1'), hosts: ['new-1.example', 'more.example'] };
    const client = { cert: renewed.toString(), key: key.pem };
    const again = certificate(await reenroll(wire(names('new-2', 'new-2.example'), own), client));
    expect([again.subject, again.subjectAltName]).toEqual(['CN=new-2', 'DNS:new-2.example']);
  });

  test('with a new key', async () => {
    const fresh = makeKey('P-384');
    const renewed = certificate(await reenroll(wire(names('rekeyed', 'a.example'), { from: fresh })));
    expect(renewed.publicKey.export({ type: 'spki', format: 'der' })).toEqual(fresh.spki);
    expect(renewed.subject).toBe('CN=rekeyed');
  });

  test('RFC 6402 §2.8: without subjectAlt the certificate has no subjectAltName', async () => {
    const renewed = certificate(await reenroll(wire(sequence(commonName('bare')))));
    expect([renewed.subject, renewed.subjectAltName]).toEqual(['CN=bare', undefined]);
  });

  test('RFC 6402 §2.8: without subject the certificate has an empty one', async () => {
    const renewed = certificate(await reenroll(wire(sequence(sequence(dns('only.example'))))));
    expect(parseCertificate(renewed.raw).subject.rdns).toEqual([]);
    expect(renewed.subjectAltName).toBe('DNS:only.example');
  });

  test('erratum 3943: subjectAlt with the tag [1]', async () => {
    const renewed = certificate(await reenroll(wire(sequence(commonName('tagged'), tlv(0xa1, dns('t.example'))))));
    expect([renewed.subject, renewed.subjectAltName]).toEqual(['CN=tagged', 'DNS:t.example']);
  });

  test('a request that @peculiar/x509 made', async () => {
    const subject = new x509.Name('O=Example, CN=peculiar');
    const alt = new x509.GeneralNames([{ type: 'dns', value: 'peculiar.example' }]);
    const change = new Sequence({ value: [fromBER(subject.toArrayBuffer()).result, fromBER(alt.rawData).result] });
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const request = await x509.Pkcs10CertificateRequestGenerator.create(
      {
        name: 'CN=old',
        keys: await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']),
        signingAlgorithm: algorithm,
        extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'old.example' }])],
        attributes: [new x509.Attribute(OID.changeSubjectName, [change.toBER()])],
      },
      webcrypto,
    );
    const renewed = certificate(await reenroll(Buffer.from(request.rawData).toString('base64')));
    expect([renewed.subject, renewed.subjectAltName]).toEqual(['O=Example\nCN=peculiar', 'DNS:peculiar.example']);
  });

  test.each<[string, string]>([
    ['another subject', wire(names('new', 'new.example'), { subject: commonName('other') })],
    ['the new subject already', wire(names('new', 'new.example'), { subject: commonName('new') })],
    ['another SAN', wire(names('new', 'new.example'), { hosts: ['new.example'] })],
    ['no SAN', wire(names('new', 'new.example'), { hosts: [] })],
  ])(
    "the request's own names are those of the presented certificate: with %s it is refused with 403",
    async (_, body) => {
      const answer = await reenroll(body);
      expect(answer.status).toBe(403);
      expect(answer.text).toMatch(/differs from that of the certificate being renewed/);
    },
  );

  test('without the attribute other names are refused with 403 as ever', async () => {
    const body = onTheWire(
      buildCsr(key, { subject: commonName('new'), attributes: [extensionRequest(san(dns('old.example')))] }),
    );
    expect((await reenroll(body)).status).toBe(403);
  });

  test.each<[string, Buffer, RegExp]>([
    ['a subject that the policy refuses', names('NOT-LOWER', 'a.example'), /has a CN that is not allowed/],
    [
      'an attribute that the policy refuses',
      sequence(name(attribute('2.5.4.11', utf8String('unit')), attribute('2.5.4.3', utf8String('new')))),
      /must not have OU/,
    ],
    ['a DNS name that the policy refuses', names('new', 'a.test'), /"DNS:a.test" is not allowed/],
    ['a kind of name that the policy refuses', sequence(commonName('new'), sequence(email('a@b.example'))), /kind/],
    ['no name at all', sequence(sequence()), /neither a subject nor/],
    ['an attribute with neither field', sequence(), /neither subject nor subjectAlt/],
    ['an attribute that is no ChangeSubjectName', NULL, /not valid DER/],
    ['an empty subjectAlt', sequence(commonName('new'), sequence()), /not valid DER/],
  ])('%s is refused with 400', async (_, change, text) => {
    const answer = await reenroll(wire(change));
    expect([answer.status, answer.headers['content-type']]).toEqual([400, 'text/plain; charset=utf-8']);
    expect(answer.text).toMatch(text);
  });
});

describe('RFC 7030 §4.2.1: simpleenroll and serverkeygen with ChangeSubjectName', () => {
  test('over mTLS the certificate has the new names', async () => {
    const body = wire(names('enrolled', 'enrolled.example'), { from: makeKey() });
    const issued = certificate(await estuary.enroll(body, { client: device }));
    expect([issued.subject, issued.subjectAltName]).toEqual(['CN=enrolled', 'DNS:enrolled.example']);
  });

  test('serverkeygen over mTLS: the certificate of the generated key has them', async () => {
    const body = wire(names('generated', 'generated.example'));
    const answer = readServerKey(await estuary.enroll(body, { client: device, path: 'serverkeygen' }));
    expectMatch(answer, readPkcs8(answer.key, PRE_SHARED));
    expect([answer.certificate.subject, answer.certificate.subjectAltName]).toEqual([
      'CN=generated',
      'DNS:generated.example',
    ]);
  });

  test.each(['simpleenroll', 'serverkeygen'])(
    '%s of another name than the certificate has is refused',
    async (path) => {
      const body = wire(names('new', 'new.example'), { subject: commonName('other') });
      const answer = await estuary.enroll(body, { client: device, path });
      expect(answer.status).toBe(403);
      expect(answer.text).toMatch(/differs from that of the certificate that authenticates it/);
    },
  );

  test.each(['simpleenroll', 'serverkeygen'])('%s with a one-time password has no names to change', async (path) => {
    const { token, id } = await estuary.otp();
    const answer = await estuary.enroll(wire(names('new', 'new.example')), { password: token, path });
    expect(answer.status).toBe(403);
    expect(answer.text).toMatch(/Only a request that a client certificate authenticates/);
    expect((await estuary.admin('GET', `/admin/otp/${id}`)).json['uses']).toBe(0);
  });
});

describe('ca.profile.allow_subject_change = false, which is the default', () => {
  test.each(['simplereenroll', 'simpleenroll', 'serverkeygen'])('lab/%s is refused with 403', async (operation) => {
    const client = await estuary.enrolled(key, 'old', ['old.example'], 'lab/simpleenroll');
    const path = `lab/${operation}`;
    const answer = await estuary.enroll(wire(names('new', 'new.example')), { client, path });
    expect([answer.status, answer.text]).toEqual([403, 'This CA does not let a request change its subject.']);
    const { json } = await estuary.admin('GET', '/admin/audit?limit=1000&type=certificate.denied');
    expect(JSON.stringify(json['items'])).toContain(`${operation}: SUBJECT_CHANGE_NOT_ALLOWED`);
  });
});

describe('approval and csrattrs', () => {
  beforeAll(async () => {
    await estuary.server.stop();
    estuary.reconfigure((config) => {
      const ca = caSection(config);
      ca['approval'] = 'manual';
      ca['csrattrs'] = { extensions: ['subjectAltName'] };
    });
    await estuary.restart();
  });

  test('a queued request shows the new names, is recognized by them, and gets them once approved', async () => {
    const poll = (cn: string): Promise<Answer> => reenroll(wire(names(cn, 'queued.example')));
    expect((await poll('queued')).status).toBe(202);
    expect((await poll('queued')).status).toBe(202);
    expect(await requestsOf(estuary, 'queued')).toMatchObject([
      { subject: 'CN=queued', sans: ['DNS:queued.example'], requester: 'CN=old', operation: 'simplereenroll' },
    ]);
    await approve(estuary, 'queued');
    expect((await poll('queued-2')).status).toBe(202);
    expect((await reenroll(wire(names('queued', 'other.example')))).status).toBe(202);
    await estuary.server.stop();
    await estuary.restart();
    const issued = certificate(await poll('queued'));
    expect([issued.subject, issued.subjectAltName]).toEqual(['CN=queued', 'DNS:queued.example']);
    expect((await requestsOf(estuary, 'queued')).map(({ status }) => status)).toEqual(['issued', 'pending']);
    expect(await requestId(estuary, 'queued-2')).toMatch(/./);
  });

  test('a queued request for a generated key as well', async () => {
    const poll = (): Promise<Answer> =>
      estuary.enroll(wire(names('queued-key', 'queued.example')), { client: device, path: 'serverkeygen' });
    expect((await poll()).status).toBe(202);
    await approve(estuary, 'queued-key');
    expect(readServerKey(await poll()).certificate.subject).toBe('CN=queued-key');
  });

  test('what csrattrs asks for is demanded of the new names', async () => {
    const answer = await reenroll(wire(sequence(commonName('bare'))));
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('needs the extension subjectAltName')]);
  });
});
