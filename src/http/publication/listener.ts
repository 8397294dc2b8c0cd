/** The publication listener: plain HTTP for relying parties. All content is public and signed. */
import { createHash } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { StatusSigner } from '../../ca/driver.ts';
import type { Ca, CaRouter } from '../../ca/router.ts';
import { codeOf, EstuaryError, describe, errorWith, notFound } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { runForRequest } from '../../request-context.ts';
import type { CrlPublisher } from '../../publication/crl-publisher.ts';
import { type OcspAnswer, OcspResponder } from '../../publication/ocsp-responder.ts';
import type { Config } from '../../config/schema.ts';
import type { CertificateStore } from '../../store/certificate-store.ts';
import { answerBrokenRequests, refuseEarly } from '../broken-requests.ts';
import { Exchanges, exchangeOf, REQUEST_ID_HEADER, type RequestCounts } from '../exchange.ts';
import { connectionOptions, limitListener, type ListenerConfig, requestOptions } from '../listener.ts';
import { checkHead, refuseTrailingSlash } from '../request-head.ts';

interface PublicationContext {
  readonly router: CaRouter;
  readonly crls: CrlPublisher;
  readonly store: CertificateStore;
  readonly log: Logger;
  readonly metrics: RequestCounts;
  readonly now: () => number;
}

/** Maximum validity of an OCSP response in seconds: relying parties may cache it that long. */
const MAX_OCSP_VALIDITY = 300;

/** An OCSP request has some hundred bytes. */
const MAX_BODY = 16 * 1024;
/** Seconds to cache a CA certificate: it changes only with the CA's key. */
const CA_CERTIFICATE_AGE = 3600;

/** undefined if disabled. The caller listens, which starts the signing of CRLs, and closes. */
export function createPublication(
  { publication, ...config }: ListenerConfig & Pick<Config, 'publication'>,
  { store, ...context }: PublicationContext,
): FastifyInstance | undefined {
  if (!publication.enabled) return undefined;
  const { router, log, now } = context;
  for (const ca of router.issuers)
    // A remote CA may still be unknown.
    if (ca.driver.statusSigner !== undefined && ca.certificate.keyUsage?.includes('cRLSign') === false)
      log.warn(
        { ca: ca.label },
        'the CA certificate may not sign CRLs (keyUsage without cRLSign): relying parties reject its CRL',
      );
  const app = fastify({
    http: connectionOptions(config),
    logger: false,
    bodyLimit: MAX_BODY,
    ...requestOptions(config),
    routerOptions: { maxParamLength: 1024 },
    frameworkErrors: (error, _request, reply) => void sendError(reply, error),
  });
  limitListener(app.server, config, refuseEarly());
  followRequests(app, context);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/ocsp-request', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  app.setErrorHandler((error, request, reply) => {
    const { statusCode } = sendError(reply, error);
    if (statusCode < 500) return;
    const fields = { request_id: request.id, route: request.routeOptions.url, detail: describe(error) };
    log.error(fields, 'publication request failed');
  });
  app.setNotFoundHandler((request) => {
    refuseTrailingSlash(request.url);
    throw notFound('NOT_FOUND', 'Nothing is served at this path.');
  });
  const validity = Math.min(publication.crl_interval, MAX_OCSP_VALIDITY);
  registerFiles(app, context);
  registerOcsp(app, { ...context, ocsp: new OcspResponder({ store, validity, log, now }) });
  return app;
}

/** Assigns IDs and log entries to all requests, also those that Node's parser rejects. */
function followRequests(app: FastifyInstance, { log, metrics }: Pick<PublicationContext, 'log' | 'metrics'>): void {
  const exchanges = new Exchanges(app.server, { listener: 'publication', lines: log, metrics });
  answerBrokenRequests(app.server, exchanges);
  app.addHook('onRequest', (request, reply, done) => {
    const exchange = exchangeOf(request.raw);
    void reply.header(REQUEST_ID_HEADER, exchange.requestId);
    // `crl`, `ca` or `ocsp`.
    if (!request.is404) exchange.operation = request.routeOptions.url?.split('/', 2)[1];
    try {
      checkHead(request.raw);
      done();
    } catch (error) {
      done(asEstuaryError(error));
    }
  });
  // After the body is read, code runs outside the context of onRequest.
  app.addHook('preHandler', (request, _reply, done) => runForRequest(exchangeOf(request.raw), done));
}

const PLAIN_TEXT = 'text/plain; charset=utf-8';

type Sources = Omit<PublicationContext, 'store'>;

function registerFiles(app: FastifyInstance, { router, crls, now }: Sources): void {
  app.get<{ Params: { file: string } }>('/crl/:file', async (request, reply) => {
    const { ca, signer } = signing(router, request, withoutSuffix(request.params.file, '.crl'));
    const crl = await crls.current(ca, signer);
    return sendFile(request, reply, {
      type: 'application/pkix-crl',
      body: crl.der,
      lastModified: crl.this_update,
      maxAge: crls.maxAge(crl) / 1000,
      now: now(),
    });
  });
  app.get<{ Params: { file: string } }>('/ca/:file', (request, reply) => {
    const { certificate, label } = router.find(withoutSuffix(request.params.file, '.cer'));
    exchangeOf(request.raw).ca = label;
    return sendFile(request, reply, {
      type: 'application/pkix-cert',
      body: certificate.der,
      lastModified: certificate.notBefore.getTime(),
      maxAge: CA_CERTIFICATE_AGE,
      now: now(),
    });
  });
  refuseOthers(app, ['/crl/:file', '/ca/:file'], ['POST', 'PUT', 'PATCH', 'DELETE'], 'GET, HEAD');
}

function registerOcsp(app: FastifyInstance, { router, ocsp, now }: Sources & { readonly ocsp: OcspResponder }): void {
  app.post<{ Params: { label: string } }>('/ocsp/:label', async (request, reply) => {
    const { ca, signer } = signing(router, request, request.params.label);
    if (!Buffer.isBuffer(request.body)) throw wrongMediaType();
    const answer = await ocsp.answer(ca, signer, request.body);
    return reply.header('Cache-Control', 'no-store').type('application/ocsp-response').send(answer.der);
  });
  // The rest of the path: base64 contains slashes, and not every client escapes them (RFC 6960 appendix A.1).
  app.get<{ Params: { label: string; '*': string } }>('/ocsp/:label/*', async (request, reply) => {
    const { ca, signer } = signing(router, request, request.params.label);
    const answer = await ocsp.answer(ca, signer, fromBase64(request.params['*']));
    return sendOcsp(request, reply, answer, now());
  });
  refuseOthers(app, ['/ocsp/:label'], ['GET', 'PUT', 'PATCH', 'DELETE'], 'POST');
  refuseOthers(app, ['/ocsp/:label/*'], ['POST', 'PUT', 'PATCH', 'DELETE'], 'GET, HEAD');
}

/**
 * Clients and proxies leave out padding, add slashes and line ends, use the URL alphabet, make "+" a space, and escape
 * twice. Invalid base64 becomes an invalid request, which the responder answers in OCSP.
 */
function fromBase64(text: string): Buffer {
  const unescaped = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  const base64 = unescaped.replace(/^\/+|[\r\n]+/g, '').replaceAll(' ', '+');
  return /^[\w+/-]+={0,2}\/*$/.test(base64) ? Buffer.from(base64, 'base64') : Buffer.alloc(0);
}

function sendOcsp(request: FastifyRequest, reply: FastifyReply, answer: OcspAnswer, now: number): FastifyReply {
  const type = 'application/ocsp-response';
  if (answer.cacheable === undefined) return reply.header('Cache-Control', 'no-store').type(type).send(answer.der);
  const { thisUpdate, nextUpdate } = answer.cacheable;
  return sendFile(request, reply, {
    type,
    body: answer.der,
    lastModified: thisUpdate,
    maxAge: (nextUpdate - now) / 1000,
    now,
  });
}

interface File {
  readonly type: string;
  readonly body: Buffer;
  /** Milliseconds. */
  readonly lastModified: number;
  /** Seconds. */
  readonly maxAge: number;
  /** Milliseconds. */
  readonly now: number;
}

/** RFC 5019 §6.2, RFC 9111: validators and a time to live; 304 if the client's copy is current. */
function sendFile(request: FastifyRequest, reply: FastifyReply, file: File): FastifyReply {
  const etag = `"${createHash('sha256').update(file.body).digest('base64url')}"`;
  const maxAge = Math.max(0, Math.floor(file.maxAge));
  reply.headers({
    ETag: etag,
    'Last-Modified': new Date(file.lastModified).toUTCString(),
    'Cache-Control': `max-age=${maxAge}, public, no-transform, must-revalidate`,
    Expires: new Date(file.now + maxAge * 1000).toUTCString(),
  });
  if (isFresh(request, etag, file.lastModified)) return reply.code(304).send();
  return reply.type(file.type).send(file.body);
}

/** RFC 9110 §13.2.2: If-None-Match takes precedence over If-Modified-Since. */
function isFresh({ headers }: FastifyRequest, etag: string, lastModified: number): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined)
    return tags.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return !Number.isNaN(since) && Math.floor(lastModified / 1000) * 1000 <= since;
}

/** A CA that signs its own CRLs and OCSP responses. @throws EstuaryError 404 */
function signing(
  router: Pick<CaRouter, 'find'>,
  request: FastifyRequest,
  label: string,
): { ca: Ca; signer: StatusSigner } {
  const { issuer: ca } = router.find(label);
  exchangeOf(request.raw).ca = ca.label;
  const signer = ca.driver.statusSigner;
  if (signer === undefined)
    throw notFound(
      'NOT_PUBLISHED_HERE',
      'This CA publishes its own CRLs and OCSP responses. Use the addresses in the certificate.',
    );
  return { ca, signer };
}

function withoutSuffix(file: string, suffix: string): string {
  if (!file.endsWith(suffix) || file.length === suffix.length)
    throw notFound('NOT_FOUND', 'Nothing is served at this path.');
  return file.slice(0, -suffix.length);
}

function refuseOthers(app: FastifyInstance, paths: readonly string[], methods: string[], allow: string): void {
  for (const url of paths)
    app.route({
      method: methods,
      url,
      exposeHeadRoute: false,
      onRequest: (_request, reply, done) => {
        reply.header('Allow', allow);
        done(errorWith(405, 'METHOD_NOT_ALLOWED', `This path supports ${allow}.`));
      },
      handler: () => undefined,
    });
}

const wrongMediaType = () => errorWith(415, 'MEDIA_TYPE_UNSUPPORTED', 'The body must be application/ocsp-request.');

function sendError(reply: FastifyReply, error: unknown): FastifyReply {
  const { status, code, message, retryAfter, detail } = asEstuaryError(error);
  const exchange = exchangeOf(reply.request.raw);
  Object.assign(exchange, { code, detail });
  void reply.header(REQUEST_ID_HEADER, exchange.requestId);
  if (retryAfter !== undefined) reply.header('Retry-After', String(retryAfter));
  reply.header('Cache-Control', 'no-store');
  return reply.code(status).type(PLAIN_TEXT).send(message);
}

function asEstuaryError(error: unknown): EstuaryError {
  if (error instanceof EstuaryError) return error;
  const code = codeOf(error);
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return wrongMediaType();
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return errorWith(413, 'BODY_TOO_LARGE', `The body is larger than ${MAX_BODY} bytes.`);
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && status >= 400 && status < 500
    ? errorWith(status === 414 ? 414 : 400, 'BAD_REQUEST', 'The request is not valid.')
    : errorWith(500, 'INTERNAL_ERROR', 'The request failed inside the server.');
}
