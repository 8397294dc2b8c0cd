import { readFileSync, writeFileSync } from 'node:fs';
import * as pkijs from 'pkijs';
import { afterAll, describe, expect, test } from 'vitest';
import { certsOnly, crlsOnly, parseCertsOnly } from '../../../src/pki/cms/cms.ts';
import {
  contextConstructed,
  DerError,
  explicit,
  integer,
  NULL,
  oid,
  sequence,
  setOf,
  tlv,
} from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate, parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { makeCa } from '../../support/ca.ts';
import { makeCa as makeIssuer, makeCrl } from '../../support/certificates.ts';
import { openssl, opensslText, temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const made = makeCa(folder.file, 'pkcs7', { kind: 'ec:P-256' });
const read = (path: string): Buffer => parsePemCertificates(readFileSync(path, 'utf8'))[0]?.der ?? Buffer.alloc(0);
const chain = [read(made.certificate), read(made.root)];

describe('RFC 5272 §4.1: a certs-only message', () => {
  const signed = (...fields: Buffer[]): Buffer => sequence(oid(OID.signedData), explicit(0, sequence(...fields)));
  const empty = setOf();
  const content = sequence(oid(OID.data));

  test('OpenSSL prints its certificates, in the order given', () => {
    const printed = opensslText(['pkcs7', '-inform', 'DER', '-print_certs', '-noout'], certsOnly(chain));
    const subjects = [...printed.matchAll(/^subject=(.*)$/gm)].map(([, subject]) => subject);
    expect(subjects).toEqual(['O = Estuary, CN = pkcs7', 'CN = pkcs7 root']);
    const reversed = opensslText(
      ['pkcs7', '-inform', 'DER', '-print_certs', '-noout'],
      certsOnly([...chain].reverse()),
    );
    expect(reversed.indexOf('CN = pkcs7 root')).toBeLessThan(reversed.indexOf('O = Estuary'));
  });

  test('pkijs reads it: SignedData of version 1 without content, digests or signers', () => {
    const info = pkijs.ContentInfo.fromBER(certsOnly(chain));
    expect(info.contentType).toBe(OID.signedData);
    const signedData = new pkijs.SignedData({ schema: info.content as unknown });
    expect(signedData.version).toBe(1);
    expect(signedData.digestAlgorithms).toEqual([]);
    expect(signedData.signerInfos).toEqual([]);
    expect(signedData.encapContentInfo.eContentType).toBe(OID.data);
    expect(signedData.encapContentInfo.eContent).toBeUndefined();
    expect(signedData.certificates).toHaveLength(2);
  });

  test("it is byte for byte what openssl crl2pkcs7 makes of the same certificates, but for OpenSSL's empty crls", () => {
    const pem = folder.file('chain.pem');
    writeFileSync(pem, readFileSync(made.certificate, 'utf8') + readFileSync(made.root, 'utf8'));
    const other = openssl(['crl2pkcs7', '-nocrl', '-certfile', pem, '-outform', 'DER']);
    expect(parseCertsOnly(other)).toEqual(chain);
    const certificates = tlv(contextConstructed(0), ...chain);
    const message = (...crls: Buffer[]): Buffer => signed(integer(1), empty, content, certificates, ...crls, empty);
    expect(certsOnly(chain)).toEqual(message());
    expect([message(), message(tlv(contextConstructed(1)))]).toContainEqual(other);
  });

  test('what was wrapped is unwrapped', () => {
    expect(parseCertsOnly(certsOnly(chain))).toEqual(chain);
    expect(parseCertsOnly(certsOnly([]))).toEqual([]);
    expect(parseCertsOnly(certsOnly(chain)).map((der) => formatName(parseCertificate(der).subject))).toEqual([
      'CN=pkcs7,O=Estuary',
      'CN=pkcs7 root',
    ]);
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['another content type', sequence(oid(OID.data), explicit(0, sequence()))],
    ['no content', sequence(oid(OID.signedData))],
    ['a signer', signed(integer(1), empty, content, setOf(sequence()))],
    ['no signerInfos', signed(integer(1), empty, content)],
    ['a field too many', signed(integer(1), empty, content, empty, NULL)],
    ['an indefinite length', Buffer.concat([Buffer.from([0x30, 0x80]), oid(OID.signedData), Buffer.alloc(2)])],
    ['trailing octets', Buffer.concat([certsOnly(chain), Buffer.alloc(1)])],
    ['a certificate cut short', signed(integer(1), empty, content, tlv(0xa0, Buffer.from([0x30, 5])), empty)],
  ])('%s is refused', (_, der) => {
    expect(() => parseCertsOnly(der)).toThrow(DerError);
  });
});

test('RFC 8295 §4.2: OpenSSL and pkijs find the lists of a crls-only message, and no certificate', async () => {
  const crl = await makeCrl(await makeIssuer('CN=lists'), { revoked: ['0102'] });
  const printed = opensslText(['pkcs7', '-inform', 'DER', '-print_certs'], crlsOnly([crl]));
  expect(printed).not.toContain('BEGIN CERTIFICATE');
  expect(openssl(['crl', '-outform', 'DER'], printed)).toEqual(crl);
  const info = pkijs.ContentInfo.fromBER(crlsOnly([crl, crl]));
  const signedData = new pkijs.SignedData({ schema: info.content as unknown });
  expect([signedData.version, signedData.crls?.length, signedData.certificates]).toEqual([1, 2, undefined]);
  expect(parseCertsOnly(crlsOnly([crl]))).toEqual([]);
});
