/** The cookie of a session. `__Host-`: browsers take it over TLS from this very host only, for all its paths (RFC 6265bis §4.1.3.2). */
import type { IncomingHttpHeaders } from 'node:http';

export const SESSION_COOKIE = '__Host-estuary-session';

const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict';

/** Without Max-Age: it goes with the browser, where the server has not ended the session before. */
export const setSession = (id: string): string => `${SESSION_COOKIE}=${id}; ${ATTRIBUTES}`;

export const CLEAR_SESSION = `${SESSION_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;

/** The id that a request carries, whatever it is; undefined: none. */
export function sessionId({ cookie }: IncomingHttpHeaders): string | undefined {
  for (const pair of (cookie ?? '').split(';')) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === SESSION_COOKIE) return value;
  }
  return undefined;
}
