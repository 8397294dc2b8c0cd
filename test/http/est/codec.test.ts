import { describe, expect, test } from 'vitest';

import { decodeBody } from '../../../src/http/est/codec.ts';
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
    expect(() => decodeBody(Buffer.from('0!'))).toThrow('The request body is not valid base64.');
  });
});
