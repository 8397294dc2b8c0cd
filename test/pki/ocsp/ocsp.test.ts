import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import {
  children,
  DerError,
  explicit,
  integer,
  NULL,
  octetString,
  oid,
  parseDer,
  sequence,
  Tag,
} from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { failureResponse, isOfIssuer, parseOcspRequest } from '../../../src/pki/ocsp/ocsp.ts';
import { parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { encodeExtensions } from '../../../src/pki/x509/extensions.ts';
import { makeCa } from '../../support/ca.ts';
import { ocspRequest } from '../../support/ocsp.ts';
import { openssl, temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const ca = makeCa(folder.file, 'ocsp', { kind: 'ec:P-256' });
const [issuer] = parsePemCertificates(readFileSync(ca.certificate, 'latin1'));
if (issuer === undefined) throw new Error('no CA certificate');

/** A request as openssl makes it. */
function request(...args: readonly string[]): Buffer {
  const out = folder.file('request.der');
  openssl(['ocsp', '-issuer', ca.certificate, '-reqout', out, ...args]);
  return readFileSync(out);
}

test.each(['-sha1', '-sha256', '-sha384', '-sha512'])('RFC 6960 §4.1.1: reads a request with %s', (hash) => {
  const { certIds, nonce } = parseOcspRequest(request(hash, '-serial', '0x7fab', '-no_nonce'));
  expect(certIds.map(({ serialNumber }) => serialNumber)).toEqual(['7fab']);
  expect(nonce).toBeUndefined();
  expect(certIds.map((id) => isOfIssuer(id, { name: issuer.subject.der, spki: issuer.spki }))).toEqual([true]);
});

test('a serial number whose top bit is set is read as the store writes it', () => {
  expect(parseOcspRequest(request('-serial', '0xff01')).certIds[0]?.serialNumber).toBe('ff01');
});

test('several certificates in one request, and the nonce', () => {
  const { certIds, nonce } = parseOcspRequest(request('-serial', '1', '-serial', '2'));
  expect(certIds.map(({ serialNumber }) => serialNumber)).toEqual(['01', '02']);
  expect(nonce?.length).toBeGreaterThan(0);
});

test.each([1, 32, 128])('RFC 9654 §2.1: reads a nonce of %i octets', (octets) => {
  const value = Buffer.alloc(octets, 7);
  expect(parseOcspRequest(ocspRequest({ certificate: issuer }, ['01'], value)).nonce).toEqual(octetString(value));
});

test.each([
  ['no octets', octetString(Buffer.alloc(0))],
  ['129 octets', octetString(Buffer.alloc(129))],
  ['32 octets that are not an OCTET STRING', Buffer.alloc(32, 7)],
  ['an OCTET STRING with octets behind it', Buffer.concat([octetString(Buffer.alloc(8)), Buffer.alloc(1)])],
  ['nothing at all', Buffer.alloc(0)],
])('RFC 9654 §2.1: a nonce of %s is malformed', (_, value) => {
  const nonce = { oid: OID.ocspNonce, critical: false, value };
  const certIds = parseDer(ocspRequest({ certificate: issuer }, ['01']), Tag.SEQUENCE).value;
  const [list] = children(parseDer(certIds, Tag.SEQUENCE).value);
  const request = sequence(sequence(list?.raw ?? Buffer.alloc(0), explicit(2, encodeExtensions([nonce]))));
  expect(() => parseOcspRequest(request)).toThrow(DerError);
});

test('a certificate of another issuer is not taken for ours', () => {
  const other = makeCa(folder.file, 'other', { kind: 'ec:P-256', subject: '/CN=somebody else' });
  const [elsewhere] = parsePemCertificates(readFileSync(other.certificate, 'latin1'));
  const [id] = parseOcspRequest(request('-serial', '1')).certIds;
  if (id === undefined || elsewhere === undefined) throw new Error('nothing parsed');
  expect(isOfIssuer(id, { name: elsewhere.subject.der, spki: issuer.spki })).toBe(false);
});

test('every truncation and every changed byte is a DerError or another request, never anything else', () => {
  const good = request('-serial', '0x7fab');
  for (let at = 0; at < good.length; at++) {
    expect(() => parseOcspRequest(good.subarray(0, at)), `cut at ${at}`).toThrow(DerError);
    const bad = Buffer.from(good);
    bad.writeUInt8(bad.readUInt8(at) ^ 0xff, at);
    try {
      parseOcspRequest(bad);
    } catch (error) {
      expect(error).toBeInstanceOf(DerError);
    }
  }
});

test.each<[string, readonly Buffer[], boolean]>([
  ['absent', [], true],
  ['NULL', [NULL], true],
  ['an OCTET STRING', [octetString(Buffer.from('one of very many'))], false],
  ['a NULL with content', [Buffer.from([Tag.NULL, 1, 0])], false],
])('parameters of the hash algorithm that are %s', (_, parameters, taken) => {
  const hash = octetString(Buffer.alloc(20));
  const certId = sequence(sequence(oid(OID.sha1), ...parameters), hash, hash, integer(1));
  const read = () => parseOcspRequest(sequence(sequence(sequence(sequence(certId)))));
  if (taken) expect(read().certIds.map(({ serialNumber }) => serialNumber)).toEqual(['01']);
  else expect(read).toThrow(DerError);
});

test('a request about nothing and one about very many are refused', () => {
  expect(() => parseOcspRequest(sequence(sequence(sequence())))).toThrow(/requestList/);
  const many = Array.from({ length: 33 }, (_, n) => ['-serial', String(n + 1)]).flat();
  expect(() => parseOcspRequest(request(...many))).toThrow(/requestList/);
});

test('RFC 6960 §2.3: error responses are those that openssl reads', () => {
  for (const [reason, words] of [
    ['malformedRequest', 'malformedrequest'],
    ['internalError', 'internalerror'],
    ['tryLater', 'trylater'],
    ['unauthorized', 'unauthorized'],
  ] as const) {
    writeFileSync(folder.file('response.der'), failureResponse(reason));
    // openssl prints the reason and exits with 1
    const { stdout, stderr } = spawnSync('openssl', ['ocsp', '-respin', folder.file('response.der')], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(stdout + stderr).toContain(`Responder Error: ${words}`);
  }
});
