/** RFC 7030 §4.5.2, RFC 8951 §4, RFC 9908: how a client uses /csrattrs. */
import { describe, expect, test } from 'vitest';
import { CsrAttributes } from '../../src/ca/csr-attributes.ts';
import { planRequest, type RequestPlan, type Wanted } from '../../src/client/request/demands.ts';
import type { CsrAttrsConfig } from '../../src/config/schema.ts';
import { sequence, tlv } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodeRequestTemplate, parseCsrAttrs, type AttrOrOid } from '../../src/pki/pkcs10/csrattrs.ts';
import { parseExtKeyUsage, parseKeyUsage } from '../../src/pki/x509/extensions.ts';
import { formatGeneralName, ipAddress, parseGeneralNames } from '../../src/pki/x509/general-name.ts';
import { formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';

const WANTED: Wanted = {
  subject: parseDistinguishedName('CN=web,O=Example'),
  subjectAltNames: [{ kind: 'dns', value: 'web.example' }, ipAddress('192.0.2.1')],
  keyType: undefined,
  extKeyUsage: [],
  isRenewal: false,
};

const NOTHING: CsrAttrsConfig = { challenge_password: false, extensions: [], oids: [], subject: [], template: false };

/** As Estuary sends it. */
function asked(config: Partial<CsrAttrsConfig>, linking = false): AttrOrOid[] {
  const { der } = new CsrAttributes({ ...NOTHING, ...config }, linking);
  return der === undefined ? [] : parseCsrAttrs(der);
}

const value = (plan: RequestPlan, oid: string): Buffer =>
  plan.extensions.find((extension) => extension.oid === oid)?.value ?? Buffer.alloc(0);
const names = (plan: RequestPlan): string[] =>
  parseGeneralNames(value(plan, OID.subjectAltName)).map(formatGeneralName);

describe('RFC 7030 §4.5.2: attributes of old', () => {
  test('nothing asked: a P-256 key, and the names that are configured', () => {
    const plan = planRequest([], WANTED);
    expect([plan.keyType, plan.binding, plan.signatureAlgorithm]).toEqual(['ec:P-256', undefined, undefined]);
    expect(names(plan)).toEqual(['DNS:web.example', 'IP:192.0.2.1']);
  });

  test.each(['ec:P-384', 'rsa:3072', 'ed25519', 'ml-dsa:65'] as const)('a key of the type %s', (key_type) => {
    for (const template of [false, true])
      expect(planRequest(asked({ key_type, template }), WANTED).keyType).toBe(key_type);
  });

  test('another key than key_type has is told before it is made', () => {
    expect(() => planRequest(asked({ key_type: 'ec:P-384' }), { ...WANTED, keyType: 'ec:P-256' })).toThrow(
      'the CA requires a key of the type ec:P-384, and key_type is ec:P-256',
    );
  });

  test('the signature algorithm, where it goes with the key', () => {
    const plan = planRequest(asked({ key_type: 'rsa:2048', signature: 'sha384WithRSAEncryption' }), WANTED);
    expect(plan.signatureAlgorithm?.name).toBe('sha384WithRSAEncryption');
    expect(planRequest(asked({ signature: 'sha384WithRSAEncryption' }), WANTED).signatureAlgorithm).toBeUndefined();
  });

  test('challengePassword asks for the channel binding; RFC 7894 §4: estIdentityLinking is preferred', () => {
    expect(planRequest(asked({ challenge_password: true }), WANTED).binding).toBe('challengePassword');
    expect(planRequest(asked({}, true), WANTED).binding).toBe('estIdentityLinking');
  });

  test('extensions with a value as they are, without one filled in', () => {
    const extensions = [{ name: 'keyUsage', value: ['digitalSignature', 'keyAgreement'] }, { name: 'extKeyUsage' }];
    const plan = planRequest(asked({ extensions }), WANTED);
    expect(parseKeyUsage(value(plan, OID.keyUsage))).toEqual(['digitalSignature', 'keyAgreement']);
    expect(parseExtKeyUsage(value(plan, OID.extKeyUsage))).toEqual([OID.clientAuth]);
  });

  test('RFC 7030 §4.5.2: an OID or attribute that is not recognized is ignored', () => {
    const plan = planRequest([{ oid: '1.2.3.4' }, { oid: '1.3.6.1.1.1.1.22', values: [sequence()] }], WANTED);
    expect(plan).toEqual(planRequest([], WANTED));
  });
});

describe('RFC 9908 §3.4: the template', () => {
  test("the CA's values of the subject, the client's where it leaves them open", () => {
    const subject = [{ CN: '' }, { OU: 'myDept' }, { OU: 'myGroup' }];
    const plan = planRequest(asked({ template: true, subject }), WANTED);
    expect(formatName(plan.subject)).toBe('O=Example,OU=myGroup,OU=myDept,CN=web');
  });

  test('a value that nobody has configured is told', () => {
    expect(() => planRequest(asked({ template: true, subject: [{ serialNumber: '' }] }), WANTED)).toThrow(
      'the CA requires a serialNumber in the subject, and subject lacks it',
    );
  });

  test('names of the subjectAltName that are empty are filled in, the others stand', () => {
    const given = sequence(tlv(0x82, Buffer.from('www.myServer.com')), tlv(0x87));
    const template = encodeRequestTemplate({
      subject: [],
      keyType: undefined,
      extensions: [{ oid: OID.subjectAltName, critical: false, value: given }],
    });
    const list = [{ oid: OID.certificationRequestInfoTemplate, values: [template] }];
    expect(names(planRequest(list, WANTED))).toEqual(['DNS:www.myServer.com', 'DNS:web.example', 'IP:192.0.2.1']);
    expect(() => planRequest(list, { ...WANTED, subjectAltNames: [] })).toThrow('requires a iPAddress');
  });

  test('RFC 9908 §4: a client that supports both uses the template alone', () => {
    const template = encodeRequestTemplate({ subject: [], keyType: 'ec:P-384', extensions: [] });
    const list = [
      { oid: OID.ed25519, values: [] },
      { oid: OID.extKeyUsage },
      { oid: OID.certificationRequestInfoTemplate, values: [template] },
    ];
    const plan = planRequest(list, WANTED);
    expect([plan.keyType, plan.extensions.map(({ oid }) => oid)]).toEqual(['ec:P-384', [OID.subjectAltName]]);
  });

  test('RFC 7030 §4.2.2: the subject of a renewal is that of the certificate, whatever the template says', () => {
    const plan = planRequest(asked({ template: true, subject: [{ OU: 'new' }] }), { ...WANTED, isRenewal: true });
    expect(plan.subject.der.equals(WANTED.subject.der)).toBe(true);
  });

  test('a malformed one is an unusable response, not a crash', () => {
    for (const der of [sequence(), tlv(0x04), Buffer.from('3003020101', 'hex')])
      expect(() => planRequest([{ oid: OID.certificationRequestInfoTemplate, values: [der] }], WANTED)).toThrow(
        'the response to csrattrs is unusable',
      );
  });
});
