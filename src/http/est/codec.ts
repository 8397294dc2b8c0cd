/**
 * EST bodies: base64 of DER, as RFC 8951 §3.1 clarifies RFC 7030. Liberal in input (white space anywhere, PEM armor),
 * exact in output.
 */
import { badRequest } from '../../errors.ts';

const BEGIN = '-----BEGIN ';
const END = '-----END ';
const DASHES = '-----';

/**
 * The DER in a request body.
 * @param body base64 (RFC 4648 §4) with any white space, or one PEM block
 * @throws EstuaryError 400 `BODY_EMPTY`, `BODY_NOT_BASE64` or `BODY_BAD_PEM`
 */
export function decodeBody(body: Buffer): Buffer {
  if (isRawDer(body))
    throw badRequest(
      'BODY_NOT_BASE64',
      'The request body is raw DER; it must be base64 of DER, with or without PEM armor.',
    );
  const text = unarmor(body.toString('latin1')).replace(/[ \t\r\n\f\v]+/g, '');
  if (text === '') throw badRequest('BODY_EMPTY', 'The request body is empty; it must be base64 of DER.');
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text))
    throw badRequest('BODY_NOT_BASE64', 'The request body is not valid base64.');
  return Buffer.from(text, 'base64');
}

/** The identifier octet of a SEQUENCE is the character `0`, with which no base64 of a SEQUENCE begins. */
function isRawDer(body: Buffer): boolean {
  return body[0] === 0x30 && body.some((octet) => octet < 0x09 || octet > 0x7e);
}

/** The content of a PEM block, or the text itself without armor. */
function unarmor(text: string): string {
  const begin = text.indexOf(BEGIN);
  if (begin < 0) return text;
  const labelEnd = text.indexOf(DASHES, begin + BEGIN.length);
  const label = labelEnd < 0 ? '' : text.slice(begin + BEGIN.length, labelEnd);
  const end = text.indexOf(`${END}${label}${DASHES}`, labelEnd);
  if (labelEnd < 0 || end < 0 || text.includes(BEGIN, begin + BEGIN.length))
    throw badRequest('BODY_BAD_PEM', 'The request body must contain exactly one complete PEM block.');
  return text.slice(labelEnd + DASHES.length, end);
}

/**
 * A response body: base64 of `der`, ending in a newline.
 * @param lineLength columns per line, or undefined for one line
 */
export function encodeBody(der: Buffer, lineLength: number | undefined): string {
  const text = der.toString('base64');
  if (lineLength === undefined) return `${text}\n`;
  let out = '';
  for (let i = 0; i < text.length; i += lineLength) out += `${text.slice(i, i + lineLength)}\n`;
  return out;
}

/**
 * The line length that a client can read. libest needs lines (it drops a long single one), strongSwan 5.9 needs a
 * single line; libest identifies itself, strongSwan sends no User-Agent.
 * @param configured `est.base64_line_length`; 0 is one line
 */
export function lineLengthFor(userAgent: string | undefined, configured: number | undefined): number | undefined {
  if (configured !== undefined) return configured === 0 ? undefined : configured;
  return userAgent?.startsWith('libest') === true ? 64 : undefined;
}
