/** HTTP rules that every listener applies to a request's head and to its response. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { badRequest, errorWith, EstuaryError, notFound } from '../errors.ts';

/** Responds in the listener's form. */
export type Refuse = (response: ServerResponse, error: EstuaryError) => void;

/** The default Retry-After of each response, in seconds. */
const retryAfterOf = new WeakMap<ServerResponse, number>();

/**
 * Applies the rules to every request of a server; call it after the server's other `request` listeners exist.
 *
 * The body of a request with `Expect: 100-continue` is invited only after the checks. Other expectations are rejected
 * (RFC 9110 §10.1.1).
 * @param retryAfter default for a 503
 */
export function applyHttpRules(server: Server, retryAfter: number, refuse: Refuse): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    acceptAbsoluteForm(request);
    retryAfterOf.set(response, retryAfter);
    const writeHead = response.writeHead.bind(response);
    response.writeHead = (status: number, ...more: unknown[]) => {
      for (const [name, value] of Object.entries(defaultHeaders(response, status)))
        if (!response.hasHeader(name)) response.setHeader(name, value);
      for (const name of response.getHeaderNames()) response.setHeader(caseOf(name), response.getHeader(name) ?? '');
      Reflect.apply(writeHead, response, [status, ...more.map(inCase)]);
      return response;
    };
  });
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const text = 'The only expectation this server meets is 100-continue.';
    refuse(response, errorWith(417, 'EXPECTATION_FAILED', text));
  });
}

/** Names as the RFCs write them. The first are those that do not begin each word with a capital. */
const inRfcs = new Map([
  ['etag', 'ETag'],
  ['www-authenticate', 'WWW-Authenticate'],
]);

/** Embedded parsers compare names with those of the RFCs; Fastify writes lower case. */
function caseOf(name: string): string {
  const known = inRfcs.get(name.toLowerCase());
  if (known !== undefined) return known;
  const made = name.replace(/(?<![a-z0-9])[a-z]/gi, (letter) => letter.toUpperCase());
  inRfcs.set(name.toLowerCase(), made);
  return made;
}

/** The headers among the arguments of `writeHead`, as an object. */
const inCase = <T>(argument: T): T | Record<string, unknown> =>
  typeof argument === 'object' && argument !== null && !Array.isArray(argument)
    ? Object.fromEntries(Object.entries(argument).map(([name, value]) => [caseOf(name), value as unknown]))
    : argument;

/** Default headers of a response: every 503 has Retry-After (RFC 9110 §15.6.4). */
export function defaultHeaders(response: ServerResponse, status: number): Readonly<Record<string, string>> {
  const retryAfter = retryAfterOf.get(response);
  return status === 503 && retryAfter !== undefined ? { 'Retry-After': String(retryAfter) } : {};
}

/** RFC 9112 §3.2.2: the authority of an absolute URI replaces the Host header. */
function acceptAbsoluteForm(request: IncomingMessage): void {
  const [, authority, path = ''] = /^https?:\/\/([^/?#@]+)([/?].*)?$/is.exec(request.url ?? '') ?? [];
  if (authority === undefined) return;
  request.url = path.startsWith('/') ? path : `/${path}`;
  if (request.headers.host !== undefined) request.headers.host = authority;
}

/** Whether the client waits for an invitation to send its body. */
export const expectsContinue = ({ headers, httpVersion }: IncomingMessage): boolean =>
  httpVersion !== '1.0' && headers.expect?.toLowerCase() === '100-continue';

/** @throws EstuaryError 404 for a path that ends with a slash */
export function refuseTrailingSlash(url: string): void {
  if (/.\/(?:\?|$)/.test(url)) throw notFound('NOT_FOUND', 'The path ends with a slash: leave it out.');
}

/** RFC 9110 §7.2: host[:port]; an IPv6 address may name its zone. */
const HOST =
  /^(?:\[[0-9a-fv][\w.:~!$&'()*+,;=%-]*\]|\[:[0-9a-f:.%\w-]*\]|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})*)(?::\d*)?$/i;

/** RFC 9112 §3.2: a routable target, and one Host header (optional in HTTP/1.0). @throws EstuaryError 400 */
export function checkHead({ headers, httpVersion, rawHeaders, url = '' }: IncomingMessage): void {
  if (!url.startsWith('/') && url !== '*')
    throw badRequest('BAD_PATH', 'The request target must be a path, or an http or https URL without a user name.');
  if (headers.host === undefined && httpVersion !== '1.0')
    throw badRequest('HOST_MISSING', 'The request needs a Host header.');
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (/^host$/i.test(rawHeaders[i] ?? '')) hosts++;
  if (hosts > 1) throw badRequest('HOST_REPEATED', 'The request has more than one Host header; it must have one.');
  if (headers.host !== undefined && !HOST.test(headers.host))
    throw badRequest('HOST_INVALID', 'The Host header must be a host name or an address, with or without a port.');
}
