/**
 * A browser adds an administrator's certificate to whatever a page of another site makes it send, and a POST without a
 * body needs no leave from us for that.
 */
import type { FastifyRequest } from 'fastify';
import type { IncomingHttpHeaders } from 'node:http';
import { forbidden } from '../../errors.ts';

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
