/** PEM (RFC 7468). */
import { InputError } from '../input-error.ts';

interface PemBlock {
  /** E.g. `CERTIFICATE`. */
  readonly label: string;
  readonly der: Buffer;
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----\r?\n?([^-]*)-----END ([A-Z0-9 ]+)-----/g;

/** All blocks of a PEM text, in order; other text is ignored. @throws InputError for a block that is not base64 */
export function parsePem(text: string): PemBlock[] {
  return [...text.matchAll(BLOCK)].map(([, label = '', body = '', end = '']) => {
    if (label !== end) throw new InputError(`PEM block BEGIN ${label} ends as ${end}`);
    const base64 = body.replace(/\s+/g, '');
    if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64))
      throw new InputError(`PEM block ${label} is not base64`);
    return { label, der: Buffer.from(base64, 'base64') };
  });
}

/** One PEM block, 64 columns, with a final newline. */
export function encodePem(label: string, der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}
