/** Identifies the caller: by the request's own credentials, otherwise by its session cookie. */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AdminSession } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { forbidden, isUnauthenticated } from '../../errors.ts';
import { presentedCredentials } from '../credentials.ts';
import type { AdminDependencies } from './dependencies.ts';

/**
 * The session cookie. `__Host-`: browsers accept it only over TLS from this host, for all paths (RFC 6265bis §4.1.3.2).
 */
export const SESSION_COOKIE = '__Host-estuary-session';

const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict';

/** Without Max-Age: the browser deletes it on exit, if the session has not ended before. */
export const setSession = (id: string): string => `${SESSION_COOKIE}=${id}; ${ATTRIBUTES}`;

export const CLEAR_SESSION = `${SESSION_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;

/** The session ID in a request, unverified. */
export const sessionId = (headers: IncomingHttpHeaders): string | undefined => cookieOf(headers, SESSION_COOKIE);

/** The value of a cookie. */
export function cookieOf({ cookie }: IncomingHttpHeaders, wanted: string): string | undefined {
  for (const pair of (cookie ?? '').split(';')) {
    const [name = '', value = ''] = pair.trim().split('=', 2);
    if (name === wanted) return value;
  }
  return undefined;
}

interface Caller {
  readonly admin: AdminIdentity;
  readonly session: AdminSession | null;
}

type Authentication = Pick<AdminDependencies, 'authenticator' | 'sessions'>;

/**
 * An `Authorization` header takes precedence over a cookie. A cookie takes precedence over the connection's
 * certificate, which a browser presents even after its user signs out. Signing in requires fresh credentials.
 * @throws EstuaryError 401
 */
export async function identify(request: FastifyRequest, { authenticator, sessions }: Authentication): Promise<Caller> {
  const presented = presentedCredentials(request.raw);
  const id = sessionId(request.headers);
  if (id === undefined || presented.authorization !== undefined || request.routeOptions.config.signsIn === true)
    return { admin: await authenticator.authenticate(presented), session: null };
  return sessions.resume(id, presented);
}

/** {@link identify} for a call in progress. @throws EstuaryError 401; the response then clears the cookie */
export async function authenticateCall(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: Authentication,
): Promise<Caller> {
  try {
    return await identify(request, deps);
  } catch (error) {
    const brought = request.headers.authorization === undefined ? sessionId(request.headers) : undefined;
    if (isUnauthenticated(error) && brought !== undefined) void reply.header('set-cookie', CLEAR_SESSION);
    throw error;
  }
}

/**
 * Cross-site request checks: a browser adds an administrator's certificate to requests from other sites, and a POST
 * without a body needs no CORS preflight.
 */

/** `Sec-Fetch-Site` values of requests without another site (W3C Fetch Metadata). */
const OWN_SITES: ReadonlySet<string> = new Set(['same-origin', 'none']);

/**
 * Rejects what a browser sends for another site's page. Other clients send neither header.
 * @throws EstuaryError 403 `CROSS_SITE`
 */
export function checkSameSite(headers: IncomingHttpHeaders): void {
  const { 'sec-fetch-site': site, origin, host } = headers;
  const foreignSite = site !== undefined && !OWN_SITES.has(site.toLowerCase());
  const foreignOrigin = origin !== undefined && origin.toLowerCase() !== `https://${host ?? ''}`.toLowerCase();
  if (foreignSite || foreignOrigin)
    throw forbidden('CROSS_SITE', 'a page of another site may not call the admin API through a browser');
}

/**
 * For a changing call that a cookie authenticates: browsers state its origin, so a client that does not may not protect
 * the cookie from other sites. Call it after {@link checkSameSite}.
 * @throws EstuaryError 403 `CROSS_SITE`
 */
export function checkOwnPage({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): void {
  if (['GET', 'HEAD'].includes(method)) return;
  const { 'sec-fetch-site': site, origin } = headers;
  if (origin === undefined && site !== 'same-origin')
    throw forbidden('CROSS_SITE', 'a call with a session must come from a page of this server', {
      detail: 'neither Origin nor Sec-Fetch-Site: same-origin',
    });
}
