/** The Basic scheme (RFC 7617). */
import type { PasswordCredentials } from '../identity.ts';

/** Longer headers are rejected. */
const MAX_HEADER = 4096;

/** Whether an `Authorization` header uses the Basic scheme, well-formed or not. */
export function isBasic(authorization: string | undefined): authorization is string {
  return authorization !== undefined && /^basic(?=[\t ]|$)/i.test(authorization);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The credentials of a Basic header; undefined if it is too long or malformed: not base64, not UTF-8, no
 * colon, a control character (RFC 7617 §2).
 */
export function parseBasic(authorization: string): PasswordCredentials | undefined {
  if (authorization.length > MAX_HEADER) return undefined;
  const base64 = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  // Padding is optional: not every device sends it.
  if (base64 === undefined || base64.replace(/=+$/, '').length % 4 === 1) return undefined;
  let userPass: string;
  try {
    userPass = utf8.decode(Buffer.from(base64, 'base64'));
  } catch {
    return undefined;
  }
  const colon = userPass.indexOf(':');
  if (colon < 0 || /\p{Cc}/u.test(userPass)) return undefined;
  return { username: userPass.slice(0, colon), password: userPass.slice(colon + 1) };
}
