import * as x509 from '@peculiar/x509';
import { fromBER, Sequence } from 'asn1js';
import { describe, expect, test } from 'vitest';
import { DerError, explicit, integer, NULL, sequence, setOf, tlv } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { changeSubject, parseChangeSubjectName } from '../../../src/pki/pkcs10/csr-content.ts';
import { parseCsr } from '../../../src/pki/pkcs10/csr.ts';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import {
  attribute,
  buildCsr,
  commonName,
  csrAttribute,
  dns,
  email,
  extension,
  extensionRequest,
  ip,
  makeKey,
  name,
  san,
} from '../../support/csr.ts';
import { openssl } from '../../support/openssl.ts';

const texts = (der: Buffer): { subject: string; names: string[] } => {
  const { subject, subjectAltNames } = parseChangeSubjectName(der);
  return { subject: formatName(subject), names: subjectAltNames.map(formatGeneralName) };
};

describe('RFC 6402 §2.8: ChangeSubjectName', () => {
  const NAMES = [dns('b.example'), ip(192, 0, 2, 1), email('a@b.example')];
  const SHOWN = ['DNS:b.example', 'IP:192.0.2.1', 'email:a@b.example'];

  test.each<[string, Buffer, string, string[]]>([
    ['both fields', sequence(commonName('new'), sequence(...NAMES)), 'CN=new', SHOWN],
    ['the subject alone', sequence(commonName('new')), 'CN=new', []],
    ['subjectAlt alone', sequence(sequence(...NAMES)), '', SHOWN],
    ['an empty subject', sequence(sequence(), sequence(...NAMES)), '', SHOWN],
    ['an empty subject alone', sequence(sequence()), '', []],
    ['erratum 3943: subjectAlt [1]', sequence(commonName('new'), tlv(0xa1, ...NAMES)), 'CN=new', SHOWN],
    ['erratum 3943: subjectAlt [1] alone', sequence(tlv(0xa1, ...NAMES)), '', SHOWN],
  ])('%s', (_, der, subject, names) => {
    expect(texts(der)).toEqual({ subject, names });
  });

  test.each<[string, Buffer]>([
    ['neither field', sequence()],
    ['no SEQUENCE', setOf(commonName('new'))],
    ['a field too many', sequence(commonName('new'), sequence(dns('a.example')), NULL)],
    ['the fields in the wrong order', sequence(sequence(dns('a.example')), commonName('new'))],
    ['two subjects', sequence(commonName('new'), commonName('newer'))],
    ['an empty subjectAlt', sequence(commonName('new'), sequence())],
    ['an empty subjectAlt [1]', sequence(commonName('new'), tlv(0xa1))],
    ['subjectAlt under another tag', sequence(commonName('new'), tlv(0xa2, dns('a.example')))],
    ['subjectAlt [1] EXPLICIT', sequence(commonName('new'), explicit(1, sequence(dns('a.example'))))],
    ['an INTEGER in place of a name', sequence(integer(1))],
    ['a subject that is cut short', sequence(Buffer.from('30053103', 'hex'))],
    ['bytes after it', Buffer.concat([sequence(commonName('new')), NULL])],
    ['nothing', Buffer.alloc(0)],
  ])('%s is refused', (_, der) => {
    expect(() => parseChangeSubjectName(der)).toThrow(DerError);
  });

  test('what @peculiar/x509 and asn1js encode is read', () => {
    const parsed = (bytes: ArrayBuffer): Sequence => {
      const { result } = fromBER(bytes);
      if (!(result instanceof Sequence)) throw new TypeError('not a SEQUENCE');
      return result;
    };
    const subject = new x509.Name('C=DE, O=Example, CN=new');
    const names = new x509.GeneralNames([
      { type: 'dns', value: 'b.example' },
      { type: 'ip', value: '2001:db8::1' },
    ]);
    const change = new Sequence({ value: [parsed(subject.toArrayBuffer()), parsed(names.rawData)] });
    expect(texts(Buffer.from(change.toBER()))).toEqual({
      subject: 'CN=new,O=Example,C=DE',
      names: ['DNS:b.example', 'IP:2001:db8::1'],
    });
  });
});

describe('a request with it', () => {
  const key = makeKey();
  const request = (change: Buffer, ...more: Buffer[]): Buffer =>
    buildCsr(key, {
      subject: commonName('old'),
      attributes: [
        extensionRequest(san(dns('old.example')), extension(OID.keyUsage, Buffer.from('03020780', 'hex'))),
        csrAttribute(OID.changeSubjectName, change),
        ...more,
      ],
    });

  test('keeps its own names until the change is made, then has the new ones and its other extensions', () => {
    const csr = parseCsr(request(sequence(commonName('new'), sequence(dns('new.example')))));
    expect([formatName(csr.subject), csr.subjectAltNames.map(formatGeneralName)]).toEqual([
      'CN=old',
      ['DNS:old.example'],
    ]);
    const changed = changeSubject(csr);
    expect([formatName(changed.subject), changed.subjectAltNames.map(formatGeneralName)]).toEqual([
      'CN=new',
      ['DNS:new.example'],
    ]);
    expect([csr.renamed, changed.renamed, changed.subjectChange]).toEqual([undefined, true, undefined]);
    expect(changed.extensions.map(({ oid }) => oid)).toEqual([OID.keyUsage, OID.subjectAltName]);
    expect(changed.extensions[1]?.value).toEqual(sequence(dns('new.example')));
  });

  test('without subjectAlt the subjectAltName goes, without subject the subject does', () => {
    const subjectAlone = changeSubject(parseCsr(request(sequence(commonName('new')))));
    expect(subjectAlone.subjectAltNames).toEqual([]);
    expect(subjectAlone.extensions.map(({ oid }) => oid)).toEqual([OID.keyUsage]);
    expect(changeSubject(parseCsr(request(sequence(sequence(dns('new.example')))))).subject.rdns).toEqual([]);
  });

  test('a request without it is left as it is', () => {
    const csr = parseCsr(buildCsr(key));
    expect(csr.subjectChange).toBeUndefined();
    expect(changeSubject(csr)).toBe(csr);
  });

  test('OpenSSL takes our test request for a request, with the attribute', () => {
    const text = openssl(['req', '-inform', 'DER', '-noout', '-text', '-verify'], request(sequence(commonName('new'))));
    expect(text.toString()).toMatch(/1\.3\.6\.1\.5\.5\.7\.7\.36|ChangeSubjectName/i);
  });

  const change = sequence(commonName('new'));
  test.each<[string, Buffer, string]>([
    [
      'two values',
      buildCsr(key, { attributes: [csrAttribute(OID.changeSubjectName, change, sequence(commonName('x')))] }),
      'CSR_MALFORMED',
    ],
    ['no value', buildCsr(key, { attributes: [csrAttribute(OID.changeSubjectName)] }), 'CSR_MALFORMED'],
    ['the attribute twice', request(change, csrAttribute(OID.changeSubjectName, change)), 'CSR_DUPLICATE_ATTRIBUTE'],
    ['neither name', request(sequence()), 'CSR_MALFORMED'],
    ['no DER', request(Buffer.from('3003', 'hex')), 'CSR_MALFORMED'],
    ['a subject with a control character', request(sequence(commonName('a\u0007b'))), 'CSR_SUBJECT_INVALID'],
    ['an empty common name', request(sequence(commonName(''))), 'CSR_SUBJECT_INVALID'],
    ['a common name that is too long', request(sequence(commonName('x'.repeat(65)))), 'CSR_SUBJECT_INVALID'],
    [
      'an attribute of the wrong type',
      request(sequence(name(attribute('2.5.4.3', integer(7))))),
      'CSR_SUBJECT_INVALID',
    ],
    ['an invalid DNS name', request(sequence(sequence(dns('not a host')))), 'CSR_SAN_INVALID'],
    ['an address of three octets', request(sequence(sequence(ip(1, 2, 3)))), 'CSR_SAN_INVALID'],
  ])('%s is refused', (_, der, code) => {
    expect(() => parseCsr(der)).toThrow(expect.objectContaining({ status: 400, code }));
  });
});
