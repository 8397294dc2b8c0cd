/**
 * EST bodies: base64 of DER, as RFC 8951 §3.1 clarifies RFC 7030. Liberal in input (white space anywhere, PEM armor),
 * exact in output.
 */
import { badRequest } from '../../errors.ts';

/** PEM labels of a CSR (RFC 7468 §7). */
const CSR_LABELS = ['CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'];
/** PEM labels of a full PKI request (RFC 7468 §8 and §9). */
export const CMC_LABELS = ['CMS', 'PKCS7'];

/**
 * The DER in a request body.
 * @param body base64 (RFC 4648 §4) with any white space, one PEM block, or base64 of a PEM text; NULs may follow
 * @throws EstuaryError 400 `BODY_EMPTY`, `BODY_NOT_BASE64` or `BODY_BAD_PEM`
 */
export function decodeBody(body: Buffer, labels: readonly string[] = CSR_LABELS): Buffer {
  // Devices count the end of a C string.
  const end = body.findLastIndex(
    (octet) => octet > 0x20 || (octet > 0 && octet < 0x09) || (octet > 0x0d && octet < 0x20),
  );
  const text = body.toString('latin1', 0, end + 1);
  if (isRawDer(text))
    throw badRequest(
      'BODY_NOT_BASE64',
      'The request body is raw DER; it must be base64 of DER, with or without PEM armor.',
    );
  if (text === '') throw badRequest('BODY_EMPTY', 'The request body is empty; it must be base64 of DER.');
  if (text.includes(BEGIN)) return unarmor(text, labels);
  const decoded = decodeBase64(text, 0);
  const isPem = decoded.subarray(0, 64).includes(BEGIN);
  return isPem ? unarmor(decoded.toString('latin1'), labels) : decoded;
}

/** The identifier octet of a SEQUENCE is the character `0`, with which no base64 of a SEQUENCE begins. */
const isRawDer = (text: string): boolean => text.startsWith('0') && /[^\t-~]/.test(text);

/** @param offset of the text in the body, for the message */
function decodeBase64(text: string, offset: number): Buffer {
  const [allowed = ''] = /^[A-Za-z0-9+/\t-\r ]*(?:=[\t-\r ]*){0,2}/.exec(text) ?? [];
  const octet = text.charCodeAt(allowed.length);
  if (allowed.length < text.length)
    throw badRequest(
      'BODY_NOT_BASE64',
      `The request body is not valid base64: octet ${offset + allowed.length + 1} is ${shown(octet)}.`,
    );
  const { length } = text.replace(/[\t-\r ]+/g, '');
  if (length % 4 !== 0)
    throw badRequest(
      'BODY_NOT_BASE64',
      `The request body is not valid base64: its length without white space, ${length}, is not a multiple of 4.`,
    );
  return Buffer.from(text, 'base64');
}

/** `0x2D ("-")` */
function shown(octet: number): string {
  const hex = `0x${octet.toString(16).toUpperCase().padStart(2, '0')}`;
  return octet > 0x20 && octet < 0x7f ? `${hex} ("${String.fromCharCode(octet)}")` : hex;
}

const BEGIN = '-----BEGIN ';
const BLOCK = /-----BEGIN ([^\r\n-]{1,64})-----/g;

/** The content of the only PEM block. */
function unarmor(text: string, labels: readonly string[]): Buffer {
  const [begin, ...more] = text.matchAll(BLOCK);
  const found = [begin, ...more].map((match) => match?.[1] ?? '');
  const key = found.find((label) => label.endsWith('PRIVATE KEY'));
  if (key !== undefined)
    throw badRequest(
      'BODY_BAD_PEM',
      `The request body has a private key (PEM label ${key}). Send the request without it. The key must no longer be used.`,
    );
  const [label = ''] = found;
  const start = (begin?.index ?? 0) + (begin?.[0].length ?? 0);
  const end = text.indexOf(`-----END ${label}-----`, start);
  if (begin === undefined || more.length > 0 || end < 0)
    throw badRequest('BODY_BAD_PEM', 'The request body must contain exactly one complete PEM block.');
  if (!labels.includes(label))
    throw badRequest('BODY_BAD_PEM', `The PEM label must be ${labels.join(' or ')}, not ${label}.`);
  const decoded = decodeBase64(text.slice(start, end), start);
  if (decoded.length === 0) throw badRequest('BODY_EMPTY', 'The PEM block in the request body is empty.');
  return decoded;
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
