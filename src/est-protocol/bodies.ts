/** Bodies of EST requests and responses (RFC 7030 §4, RFC 8951 §3), as other implementations write them. */
import { parseCertsOnly } from '../pki/cms/cms.ts';
import { berToDer } from '../pki/der/ber.ts';
import { parsePem } from '../pki/der/pem.ts';
import { InputError } from '../pki/input-error.ts';

/** Of an enrollment. */
export const REQUEST_HEADERS = { 'Content-Type': 'application/pkcs10', 'Content-Transfer-Encoding': 'base64' } as const;

/** Base64 in lines (RFC 2045). */
export const requestBody = (csr: Buffer): string => `${csr.toString('base64').replace(/.{64}(?=.)/g, '$&\r\n')}\r\n`;

/** Whether a response carries a certificate; some servers answer 201. */
export const isIssued = (status: number): boolean => status === 200 || status === 201;

/** Whether a response to csrattrs says that there are no requirements; 501: disabled. */
export const isWithoutAttributes = (status: number): boolean => [204, 404, 501].includes(status);

/**
 * RFC 8951 §3.1: base64 regardless of Content-Transfer-Encoding, with white space anywhere. Old servers send PEM or DER,
 * and others BER. @throws InputError
 */
export const derOf = (body: Buffer): Buffer => berToDer(decoded(body));

/** The certificates of a certs-only message, DER. @throws InputError */
export const certificatesOf = (body: Buffer): Buffer[] => parseCertsOnly(derOf(body));

function decoded(body: Buffer): Buffer {
  const text = body.toString('latin1');
  if (body[0] === 0x30 && !/^[A-Za-z0-9+/=\s]*$/.test(text)) return body;
  if (text.includes('-----BEGIN ')) {
    const [block] = parsePem(text);
    if (block !== undefined) return block.der;
  }
  // libest ends its csrattrs with a NUL.
  const base64 = text.replace(/[\s\0]+/g, '');
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) throw new InputError('it is not base64');
  return Buffer.from(base64, 'base64');
}
