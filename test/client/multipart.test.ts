/** RFC 2046 §5.1: multipart bodies as EST servers send them. */
import { expect, test } from 'vitest';
import { parseMultipart } from '../../src/client/http/multipart.ts';

const read = (type: string, body: string): [string, string][] =>
  parseMultipart(type, Buffer.from(body)).map((part) => [part.type, part.body.toString()]);
const PARTS = [
  ['application/pkcs8', 'QQ=='],
  ['application/pkcs7-mime', 'Qg=='],
];

test.each([
  [
    'CRLF',
    'multipart/mixed; boundary=b',
    '--b\r\nContent-Type: application/pkcs8\r\n\r\nQQ==\r\n--b\r\nContent-Type: application/pkcs7-mime; smime-type=certs-only\r\n\r\nQg==\r\n--b--\r\n',
  ],
  [
    'LF',
    'multipart/mixed; boundary=b',
    '--b\nContent-Type: application/pkcs8\n\nQQ==\n--b\nContent-Type: application/pkcs7-mime\n\nQg==\n--b--',
  ],
  [
    'a quoted boundary with special characters',
    'Multipart/Mixed; charset=x; Boundary="(a+b).?"',
    '--(a+b).?\r\ncontent-type:application/PKCS8\r\n\r\nQQ==\r\n--(a+b).?\r\nX: y\r\nCONTENT-TYPE: application/pkcs7-mime;\r\n smime-type=certs-only\r\n\r\nQg==\r\n--(a+b).?--',
  ],
  [
    'preamble, epilogue and white space after the boundary',
    'multipart/mixed;boundary=b',
    'Hello\r\n--b  \r\nContent-Type: application/pkcs8\r\n\r\nQQ==\r\n--b\r\nContent-Type: application/pkcs7-mime\r\n\r\nQg==\r\n--b--\r\nBye\r\n--b\r\n\r\nnot a part',
  ],
  [
    'no closing boundary',
    'multipart/mixed; boundary=b',
    '--b\r\nContent-Type: application/pkcs8\r\n\r\nQQ==\r\n--b\r\nContent-Type: application/pkcs7-mime\r\n\r\nQg==',
  ],
])('with %s', (_, type, body) => expect(read(type, body)).toEqual(PARTS));

test('a line that only begins like the boundary belongs to the part', () => {
  expect(read('multipart/mixed; boundary=b', '--b\n\na\n--bc\n--b--')).toEqual([['text/plain', 'a\n--bc']]);
});

test.each([
  ['multipart/mixed', '--b\n\na\n--b--', 'without a boundary'],
  ['multipart/mixed; boundary=b', 'nothing', 'has no parts'],
])('%s %j is rejected', (type, body, message) => expect(() => read(type, body)).toThrow(message));
