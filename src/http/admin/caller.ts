/** Who makes a call: what it brings itself, or else the session that its cookie names. */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AdminSession } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { forbidden, isUnauthenticated } from '../../errors.ts';
import { presentedCredentials } from '../credentials.ts';
import type { AdminDependencies } from './dependencies.ts';

/** The cookie of a session. `__Host-`: browsers take it over TLS from this very host only, for all its paths (RFC 6265bis §4.1.3.2). */
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

interface Caller {
  readonly admin: AdminIdentity;
  readonly session: AdminSession | null;
}

type Authentication = Pick<AdminDependencies, 'authenticator' | 'sessions'>;

/**
 * An `Authorization` header goes before a cookie. A cookie goes before the certificate of the connection, which a browser shows whether
 * its user is still signed in or not. Who signs in proves anew who it is.
 *
 * @throws EstuaryError 401
 */
export async function identify(request: FastifyRequest, { authenticator, sessions }: Authentication): Promise<Caller> {
  const presented = presentedCredentials(request.raw);
  const id = sessionId(request.headers);
  if (id === undefined || presented.authorization !== undefined || request.routeOptions.config.signsIn === true)
    return { admin: await authenticator.authenticate(presented), session: null };
  return sessions.resume(id, presented);
}

/** The same of a call that is still to be answered. @throws EstuaryError 401, with which the answer takes the cookie back */
export async function letIn(request: FastifyRequest, reply: FastifyReply, deps: Authentication): Promise<Caller> {
  try {
    return await identify(request, deps);
  } catch (error) {
    const brought = request.headers.authorization === undefined ? sessionId(request.headers) : undefined;
    if (isUnauthenticated(error) && brought !== undefined) void reply.header('set-cookie', CLEAR_SESSION);
    throw error;
  }
}

/**
 * A browser adds an administrator's certificate to whatever a page of another site makes it send, and a POST without a
 * body needs no leave from us for that.
 */

/** What `Sec-Fetch-Site` says of requests that no other site has caused (W3C Fetch Metadata). */
const OWN_SITES: ReadonlySet<string> = new Set(['same-origin', 'none']);

/**
 * Refuses what a browser sends for a page of another site. Other clients send neither header.
 *
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
 * Of a call that a cookie authenticates, which is meant to change something: every browser says where it comes from, so one that does not
 * is none that we know to keep the cookie from other sites. To be asked behind {@link checkSameSite}.
 *
 * @throws EstuaryError 403 `CROSS_SITE`
 */
export function checkOwnPage({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): void {
  if (['GET', 'HEAD'].includes(method)) return;
  const { 'sec-fetch-site': site, origin } = headers;
  if (origin === undefined && site !== 'same-origin')
    throw forbidden('CROSS_SITE', 'a call by a session has to come from a page of this server', {
      detail: 'neither Origin nor Sec-Fetch-Site: same-origin',
    });
}
