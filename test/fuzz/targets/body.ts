/** Bodies of EST: base64 with white space or armor (RFC 8951). */
import { decodeBody, encodeBody, lineLengthFor } from '../../../src/http/est/codec.ts';
import { multipart } from '../../../src/http/est/enrollment.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { isClientError, type Target } from '../target.ts';

function read(input: Buffer): void {
  lineLengthFor(input.toString('latin1'), undefined);
  const der = decodeBody(input);
  for (const lineLength of [undefined, 64]) {
    if (!decodeBody(Buffer.from(encodeBody(der, lineLength))).equals(der))
      throw new Error('what was written is read otherwise');
    multipart([{ contentType: 'application/pkcs8', der }], lineLength);
  }
}

const der = Buffer.alloc(100, 'octets');

export const target: Target = {
  grammar: 'text',
  words: ['-----BEGIN ', '-----END ', '-----', '-----BEGIN CERTIFICATE REQUEST-----', '=', '==', '\r\n'],
  seeds: () => [
    Buffer.from(encodeBody(der, undefined)),
    Buffer.from(encodeBody(der, 64)),
    Buffer.from(encodePem('CERTIFICATE REQUEST', der)),
    Buffer.from(`text before\n${encodePem('PKCS7', der)}text after`),
    Buffer.from(' TQ==\r\n'),
  ],
  read,
  isRefusal: isClientError,
};
