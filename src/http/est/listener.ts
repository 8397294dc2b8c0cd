/** The EST listener: a Fastify instance over TLS that runs the first checks in order. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { TLSSocket, type TlsOptions } from 'node:tls';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { PresentedCredentials } from '../../auth/identity.ts';
import type { CaRouter } from '../../ca/router.ts';
import type { Config } from '../../config/schema.ts';
import { countsAt } from '../../config/rules/names.ts';
import { EstuaryError, badRequest, errorWith, unauthorized } from '../../errors.ts';
import { channelBinding } from '../../pki/channel-binding.ts';
import { lineLengthFor } from './codec.ts';
import type { EstAnswer, EstOperation, OperationName } from './operation.ts';
import type { Logger } from '../../log.ts';
import {
  asEstuaryError,
  bodyTooLarge,
  challenge,
  checkBodyHead,
  errorAnswer,
  type ErrorPolicy,
  type EstRoute,
  resolveRoute,
  writeAnswer,
} from './route.ts';
import { answerBrokenRequests } from '../broken-requests.ts';
import { presentedCredentials } from '../credentials.ts';
import { forwardedOf, readForwarded, type Forwarding } from '../forwarded-client.ts';
import { ActiveRequests } from '../admission.ts';
import { Exchanges, exchangeOf, type Exchange, type RequestCounts } from '../exchange.ts';
import { runForRequest } from '../../request-context.ts';
import { connectionOptions, limitListener, requestOptions } from '../listener.ts';
import { checkHead, expectsContinue } from '../request-head.ts';
import { observing, type ObserveRequest } from './observation.ts';

export interface EstListenerOptions {
  readonly tls: TlsOptions;
  readonly router: CaRouter;
  readonly operations: ReadonlyMap<OperationName, EstOperation>;
  readonly log: Logger;
  readonly config: Pick<Config, 'server' | 'limits' | 'est'>;
  readonly errors: ErrorPolicy;
  /** undefined: ignores the headers of RFC 9440. */
  readonly forwarding:
    | (Forwarding & {
        /** Repeats the handshake's checks of a direct connection. @throws EstuaryError 401 */
        readonly check: (presented: PresentedCredentials) => Promise<void>;
      })
    | undefined;
  readonly metrics: RequestCounts;
  /** Receives what each request shows of certificates. */
  readonly observe: ObserveRequest;
}

type EstListener = FastifyInstance<Server>;

const nothingPresented = ({ authorization, peerCertificate }: PresentedCredentials): boolean =>
  authorization === undefined && peerCertificate === undefined;

export function createEstListener(options: EstListenerOptions): EstListener {
  const { body_limit: bodyLimit } = options.config.server;
  const activeRequests = new ActiveRequests();
  const routes = new WeakMap<FastifyRequest, EstRoute>();
  const app = fastify({
    // A SPNEGO token may need tens of KiB in one header; Node's default is 16 KiB for all headers.
    https: { ...options.tls, ...connectionOptions(options.config), maxHeaderSize: 96 * 1024 },
    bodyLimit,
    ...requestOptions(options.config),
    exposeHeadRoutes: false,
    // A path that Fastify cannot decode never reaches a route.
    frameworkErrors: (error, _request, reply) => {
      reply.hijack();
      const mapped = badRequest('BAD_PATH', 'The request path is not valid.', { detail: error.message });
      writeError(reply.raw, mapped, options.errors);
    },
  });
  limitListener(app.server, options.config, (response, error) => writeError(response, error, options.errors));
  const { metrics } = options;
  const lines = options.log;
  answerBrokenRequests(app.server, new Exchanges(app.server, { listener: 'est', lines, metrics }));

  const { forwarding } = options;
  const observe = observing(app.server, options.observe);
  if (forwarding !== undefined)
    for (const event of ['request', 'checkContinue', 'checkExpectation'])
      app.server.prependListener(event, (request: IncomingMessage) => readForwarded(request, forwarding));

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.addHook('onRequest', (request, reply, done) => {
    try {
      checkHead(request.raw);
      forwardedOf(request.raw);
      const route = resolveRoute(options.router, options.operations, request.method, request.raw.url ?? '');
      checkBodyHead(route.operation, request.headers, bodyLimit);
      routes.set(request, route);
      continueIfExpected(request, reply, route.operation);
      Object.assign(exchangeOf(request.raw), { operation: route.operation.name, ca: route.ca.label });
      done();
    } catch (error) {
      done(asEstuaryError(error));
    }
  });

  const policyOf = (request: FastifyRequest): ErrorPolicy => {
    const ca = routes.get(request)?.ca;
    const { negotiate, bearer } = options.errors;
    return { negotiate, bearer: bearer && (ca === undefined || countsAt(ca.config, 'jwt')) };
  };

  const handle = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const route = routes.get(request);
    if (route === undefined) throw errorWith(404, 'NOT_FOUND', 'This path is not an EST path.');
    const { socket } = request.raw;
    const exchange = exchangeOf(request.raw);
    const forwarded = forwardedOf(request.raw);
    const presented = presentedCredentials(request.raw, forwarded);
    const answering = runForRequest(exchange, () =>
      activeRequests.run(socket, exchange.address, async () => {
        if (forwarded !== undefined) await forwarding?.check(presented);
        return route.operation.handle({
          requestId: exchange.requestId,
          ca: route.ca,
          id: route.id,
          presented,
          // On a proxy's connection it does not concern the client.
          channelBinding: () =>
            socket instanceof TLSSocket && forwarded === undefined ? channelBinding(socket, 'server') : undefined,
          isGone: () => socket.destroyed,
          body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
          lineLength: lineLengthFor(request.headers['user-agent'], options.config.est.base64_line_length),
        });
      }),
    );
    exchange.atWork = answering.then(
      () => undefined,
      (error: unknown) => noteError(exchange, asEstuaryError(error)),
    );
    const seen = { route, exchange, presented, socket };
    const answer = await answering.catch((error: unknown) => {
      observe({ ...seen, error: asEstuaryError(error) });
      throw error;
    });
    observe({ ...seen, answer });
    reply.hijack();
    writeAnswer(reply.raw, answer.status === 401 ? challenging(answer, policyOf(request)) : answer);
  };
  app.all('/*', handle);
  app.setNotFoundHandler(handle);

  app.setErrorHandler((error, request, reply) => {
    const mapped = mapFrameworkError(error, bodyLimit);
    const exchange = exchangeOf(request.raw);
    if (exchange.operation === undefined) exchange.url = request.url;
    reply.hijack();
    if (reply.raw.headersSent) reply.raw.destroy();
    else writeError(reply.raw, mapped, policyOf(request));
  });
  return app;
}

function writeError(response: ServerResponse, error: EstuaryError, policy: ErrorPolicy): void {
  noteError(exchangeOf(response.req), error);
  writeAnswer(response, errorAnswer(error, policy));
}

function noteError(exchange: Exchange, { code, detail }: EstuaryError): void {
  Object.assign(exchange, { code, detail });
}

/** A rejection in the operation's own form is a 401 like any other. */
function challenging(answer: EstAnswer, policy: ErrorPolicy): EstAnswer {
  return { ...answer, headers: { ...answer.headers, 'WWW-Authenticate': challenge(policy) } };
}

/** Maps Fastify's own errors `FST_…` that a client can cause. */
function mapFrameworkError(error: unknown, bodyLimit: number): EstuaryError {
  if (error instanceof Error && 'code' in error && 'statusCode' in error && !(error instanceof EstuaryError)) {
    if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge(bodyLimit);
    if (typeof error.statusCode === 'number' && error.statusCode >= 400 && error.statusCode < 500) {
      return badRequest('BAD_REQUEST', 'The request is not valid HTTP for this operation.', { detail: error.message });
    }
  }
  return asEstuaryError(error);
}

/** Invites the body after the cheap checks. A client without credentials is challenged first. */
function continueIfExpected(request: FastifyRequest, reply: FastifyReply, operation: EstOperation): void {
  if (!expectsContinue(request.raw)) return;
  if (operation.challenges && nothingPresented(presentedCredentials(request.raw, forwardedOf(request.raw))))
    throw unauthorized('AUTHENTICATION_REQUIRED', '');
  reply.raw.writeContinue();
}
