import { describe, expect, test } from 'vitest';

import { CMC_LABELS, decodeBody } from '../../../src/http/est/codec.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { onTheWire, makeKey, simpleCsr } from '../../support/csr.ts';

const csr = simpleCsr(makeKey());

describe('a body that is raw DER is told so', () => {
  test.each([
    ['a CSR', csr],
    ['a CSR with a line end after it', Buffer.concat([csr, Buffer.from('\r\n')])],
  ])('%s', (_, body) => {
    expect(() => decodeBody(body)).toThrow(
      'The request body is raw DER; it must be base64 of DER, with or without PEM armor.',
    );
  });

  test.each([
    ['base64', onTheWire(csr)],
    ['base64 that begins with the same octet', '0000'],
  ])('%s is read', (_, body) => {
    expect(decodeBody(Buffer.from(body))).toEqual(Buffer.from(body, 'base64'));
  });

  test('what is neither is told so too', () => {
    expect(() => decodeBody(Buffer.from('0!'))).toThrow('The request body is not valid base64: octet 2 is 0x21 ("!").');
  });
});

const wire = onTheWire(csr);
const pem = encodePem('CERTIFICATE REQUEST', csr);

test.each([
  ['base64 and a NUL', `${wire}\0`],
  ['base64, a line end and NULs', `${wire}\r\n\0\0\0`],
  ['PEM and a NUL', `${pem}\0`],
  ['base64 of a PEM text', Buffer.from(pem).toString('base64')],
  ['base64 of a PEM text and a NUL', `${Buffer.from(pem).toString('base64')}\0`],
  ['a label of RFC 7468 appendix A', pem.replaceAll('CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST')],
])('RFC 8951 §3.1: %s is read', (_, body) => {
  expect(decodeBody(Buffer.from(body, 'latin1'))).toEqual(csr);
});

describe('a 400 names the first octet that is not allowed, and its place in the body', () => {
  const at = pem.indexOf('\n') + 5;
  test.each([
    ['base64url', `AB-_`, 'octet 3 is 0x2D ("-")'],
    ['a byte order mark', `\xef\xbb\xbf${wire}`, 'octet 1 is 0xEF'],
    ['a line end as two characters', `${wire.slice(0, 8)}\\n${wire.slice(8)}`, 'octet 9 is 0x5C ("\\")'],
    ['a NUL in the middle', `${wire.slice(0, 8)}\0${wire.slice(8)}`, 'octet 9 is 0x00'],
    ['padding in the middle', `AB==CDEF`, 'octet 5 is 0x43 ("C")'],
    ['too much padding', `ABCD===`, 'octet 7 is 0x3D ("=")'],
    ['inside PEM', `${pem.slice(0, at)}!${pem.slice(at)}`, `octet ${at + 1} is 0x21 ("!")`],
    ['missing padding', 'ABCDEF', 'its length without white space, 6, is not a multiple of 4'],
  ])('%s', (_, body, reason) => {
    expect(() => decodeBody(Buffer.from(body, 'latin1'))).toThrow(`The request body is not valid base64: ${reason}.`);
  });
});

describe('a PEM label that the operation does not accept', () => {
  test('is named', () => {
    expect(() => decodeBody(Buffer.from(encodePem('CERTIFICATE', csr)))).toThrow(
      'The PEM label must be CERTIFICATE REQUEST or NEW CERTIFICATE REQUEST, not CERTIFICATE.',
    );
    expect(() => decodeBody(Buffer.from(pem), CMC_LABELS)).toThrow(
      'The PEM label must be CMS or PKCS7, not CERTIFICATE REQUEST.',
    );
    expect(decodeBody(Buffer.from(encodePem('PKCS7', csr)), CMC_LABELS)).toEqual(csr);
  });

  test.each(['PRIVATE KEY', 'EC PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'])(
    '%s: the key must no longer be used',
    (label) => {
      for (const body of [encodePem(label, csr), pem + encodePem(label, csr)])
        expect(() => decodeBody(Buffer.from(body))).toThrow(
          `The request body has a private key (PEM label ${label}). Send the request without it. The key must no longer be used.`,
        );
    },
  );
});

test('the time to read a body grows with its size: a run of line ends in its middle costs no more', () => {
  const body = Buffer.from(`AB${'\n'.repeat(2 ** 20)}CD`);
  expect(decodeBody(body)).toEqual(Buffer.from('ABCD', 'base64'));
});
