/** multipart/mixed (RFC 2046 §5.1) of base64 parts, as EST clients read it. */
import { randomBytes } from 'node:crypto';
import { encodeBody } from './codec.ts';

export interface Part {
  readonly contentType: string;
  readonly der: Buffer;
}

/**
 * @param lineLength columns of a base64 line, or undefined for one line
 * @returns the value of Content-Type, and a body that ends with the closing boundary: an epilogue breaks Bouncy Castle
 */
export function multipart(
  parts: readonly Part[],
  lineLength: number | undefined,
): { readonly contentType: string; readonly body: string } {
  const boundary = `estuary-${randomBytes(16).toString('hex')}`;
  const texts = parts.map(
    ({ contentType, der }) =>
      `--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Transfer-Encoding: base64\r\n\r\n` +
      encodeBody(der, lineLength).replaceAll('\n', '\r\n'),
  );
  return { contentType: `multipart/mixed; boundary=${boundary}`, body: `${texts.join('')}--${boundary}--\r\n` };
}
