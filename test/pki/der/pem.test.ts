/** PEM texts as people and programs leave them: whole ones are read, cut ones are refused. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encodePem, parsePem, tidyPem } from '../../../src/pki/der/pem.ts';

const [first, second] = [Buffer.alloc(100, 1), Buffer.alloc(50, 2)];
const text = encodePem('CERTIFICATE', first) + encodePem('X509 CRL', second);
const blocks = [
  { label: 'CERTIFICATE', der: first },
  { label: 'X509 CRL', der: second },
];

/** How editors and systems change a text. */
const CHANGES: readonly (readonly [what: string, change: (pem: string) => string])[] = [
  ['as it was written', (pem) => pem],
  ['indented', (pem) => pem.replace(/^/gm, '    ')],
  ['with bare CR line ends', (pem) => pem.replaceAll('\n', '\r')],
  ['with CRLF', (pem) => pem.replaceAll('\n', '\r\n')],
  ['with a byte order mark', (pem) => `\ufeff${pem}`],
  ['with the octets of a byte order mark', (pem) => `\xef\xbb\xbf${pem}`],
  ['with spaces at the ends of lines', (pem) => pem.replaceAll('\n', ' \n')],
  ['without a line end at its end', (pem) => pem.trimEnd()],
];

describe('a PEM text is read', () => {
  test.each(CHANGES)('%s', (_, change) => {
    expect(parsePem(change(text))).toEqual(blocks);
  });

  test.each(CHANGES)('a key %s', (_, change) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(createPrivateKey(tidyPem(change(pem))).equals(privateKey)).toBe(true);
  });

  test('with text and dashes around its blocks', () => {
    expect(parsePem(`----- my CA -----\n${text}-----\n# end`)).toEqual(blocks);
  });

  test('with the headers of an encrypted key', () => {
    const key = `-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00FF\n\nAAAA\n-----END EC PRIVATE KEY-----\n`;
    expect(parsePem(text + key).map(({ label }) => label)).toEqual(['CERTIFICATE', 'X509 CRL', 'EC PRIVATE KEY']);
  });
});

describe('a cut PEM text is refused', () => {
  const whole = encodePem('CERTIFICATE', first).length;
  const LAST = text.trimEnd().length;

  test('wherever its last block is cut', () => {
    // A few dashes alone may be a separator.
    for (let length = whole + '-----B'.length; length < LAST; length++)
      expect(() => parsePem(text.slice(0, length)), String(length)).toThrow('PEM block 2');
  });

  test.each([
    ['begins and does not end', 'PEM block 1 (CERTIFICATE) begins and does not end', text.slice(0, 100) + text],
    [
      'ends otherwise',
      'PEM block 1 BEGIN CERTIFICATE ends as X509 CRL',
      text.replace(/-----END.*\n-----BEGIN.*\n/, ''),
    ],
    ['ends without a beginning', 'PEM block 1 ends without a BEGIN line', text.slice(30)],
    ['is not base64', 'PEM block 2 (X509 CRL) is not base64', text.replace('AgIC', '!')],
  ])('a block that %s', (_, message, pem) => {
    expect(() => parsePem(pem)).toThrow(message);
  });
});
