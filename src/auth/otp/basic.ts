/** The Basic scheme (RFC 7617). */
import { isUtf8 } from 'node:buffer';
import type { PasswordCredentials } from '../identity.ts';

/** Longer headers are rejected. */
const MAX_HEADER = 4096;

/** Whether an `Authorization` header uses the Basic scheme, well-formed or not. */
export function isBasic(authorization: string | undefined): authorization is string {
  return authorization !== undefined && /^basic(?=[\t ]|$)/i.test(authorization);
}

/** Text of octets in an unknown encoding, which stays different for different octets. */
const escaped = (octets: Buffer): string =>
  octets
    .toString('latin1')
    .replace(/[\\\x80-\xff]/g, (character) => `\\x${Buffer.from(character, 'latin1').toString('hex')}`);

/** Credentials whose parts may be in any encoding. */
interface BasicCredentials extends PasswordCredentials {
  /** Otherwise octets above 0x7F are escaped. */
  readonly isUtf8: boolean;
}

/**
 * The credentials of a Basic header, split at the first colon octet; undefined if it is too long or malformed: not base64,
 * no colon, a control character (RFC 7617 §2).
 */
export function parseBasic(authorization: string): BasicCredentials | undefined {
  if (authorization.length > MAX_HEADER) return undefined;
  const base64 = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  // Padding is optional: not every device sends it.
  if (base64 === undefined || base64.replace(/=+$/, '').length % 4 === 1) return undefined;
  const userPass = Buffer.from(base64, 'base64');
  const colon = userPass.indexOf(0x3a);
  const parts = [userPass.subarray(0, colon), userPass.subarray(colon + 1)];
  const [username = '', password = ''] = parts.map((part) => (isUtf8(part) ? part.toString('utf8') : escaped(part)));
  if (colon < 0 || /\p{Cc}/u.test(username + password)) return undefined;
  return { username, password, isUtf8: parts.every(isUtf8) };
}
