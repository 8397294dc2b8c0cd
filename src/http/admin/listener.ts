/**
 * The admin listener's Fastify instance: authentication first, uniform errors. Each resource has a file in this folder.
 */
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import type { ServerOptions } from 'node:https';
import { accessEvent, accessOf, checkLabelRule, checkRole, isChanging } from './access.ts';
import { registerAudit } from './audit.ts';
import { checkOwnPage, checkSameSite, authenticateCall } from './caller.ts';
import { registerBulkParsers } from './bulk/bulk.ts';
import { registerNotifications } from './notifications.ts';
import { registerRenewals } from './renewals.ts';
import { registerRescue } from './rescue.ts';
import { registerRevocation } from './revocation.ts';
import { registerRollover } from './rollover.ts';
import { registerCas } from './cas.ts';
import { registerCertificates } from './certificates.ts';
import { registerConsole } from './console.ts';
import { registerCheck } from './check.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import {
  announcesBody,
  checkBodyHead,
  errorAnswer,
  registerJsonParser,
  serializerCompiler,
  toErrorAnswer,
} from './json-body.ts';
import { registerDevices } from './devices.ts';
import { registerReload } from './reload.ts';
import { registerFleet } from './fleet.ts';
import { registerEvents } from './events.ts';
import { registerHistory } from './history.ts';
import { HealthMonitor, registerHealth } from './health.ts';
import { registerLockouts } from './lockouts.ts';
import { registerMetrics } from './metrics.ts';
import {
  allowedMethods,
  isAdminPath,
  recordRoute,
  registerOpenApi,
  registerSwagger,
  type RouteTable,
} from './openapi.ts';
import { registerOidc } from './oidc.ts';
import { registerService } from './service.ts';
import { registerSession } from './session.ts';
import { registerOverview } from './overview.ts';
import { registerStatistics } from './statistics.ts';
import { registerOtp } from './otp.ts';
import { registerOtpBulk } from './otp-bulk.ts';
import { registerRequests } from './requests.ts';
import { validatorCompiler } from './validation.ts';
import { EstuaryError, describe, errorWith, notFound } from '../../errors.ts';
import { runForRequest } from '../../request-context.ts';
import { answerBrokenRequests, refuseEarly, type Refusal } from '../broken-requests.ts';
import { Exchanges, exchangeOf, REQUEST_ID_HEADER } from '../exchange.ts';
import { requestAddress } from '../address.ts';
import { connectionOptions, limitListener, requestOptions } from '../listener.ts';
import { checkHead, expectsContinue, refuseTrailingSlash } from '../request-head.ts';

/** @param tls the TLS options of the listener; plain HTTP without them, for `inject` in tests only */
export function createAdminApp(deps: AdminDependencies, tls?: ServerOptions): AdminApp {
  const { settings, log, metrics } = deps;
  const app: AdminApp = fastify({
    https: tls === undefined ? null : { ...tls, ...connectionOptions(settings) },
    logger: false,
    bodyLimit: settings.server.body_limit,
    ...requestOptions(settings),
    routerOptions: { maxParamLength: 1024 },
    frameworkErrors: (error, _request, reply) => void sendError(reply, error),
  });
  const exchanges = new Exchanges(app.server, { listener: 'admin', lines: log, metrics });
  answerBrokenRequests(app.server, exchanges, brokenRequestAnswer);
  limitListener(app.server, settings, refuseEarly(brokenRequestAnswer));
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  registerJsonParser(app);
  registerBulkParsers(app);
  registerErrorHandling(app, deps, exchanges);
  registerGate(app, deps);
  registerSwagger(app, deps);
  app.register((routes: AdminApp, _options, done) => {
    const monitor = new HealthMonitor(deps.store, deps.now);
    registerHealth(routes, deps, monitor);
    registerMetrics(routes, deps, monitor);
    registerOtp(routes, deps);
    registerOtpBulk(routes, deps);
    registerCertificates(routes, deps);
    registerFleet(routes, deps);
    registerRevocation(routes, deps);
    registerRescue(routes, deps);
    registerRollover(routes, deps);
    registerRenewals(routes, deps);
    registerNotifications(routes, deps);
    registerRequests(routes, deps);
    registerCheck(routes, deps);
    registerDevices(routes, deps);
    registerCas(routes, deps, monitor);
    registerLockouts(routes, deps);
    registerAudit(routes, deps);
    registerReload(routes, deps);
    registerOverview(routes, deps, monitor);
    registerStatistics(routes, deps);
    registerEvents(routes, deps);
    registerHistory(routes, deps);
    registerSession(routes, deps);
    registerService(routes, deps);
    registerOidc(routes, deps);
    registerOpenApi(routes);
    if (deps.settings.admin.console) registerConsole(routes, deps);
    done();
  });
  return app;
}

/** Checks before the body is read: authentication, the browser's origin site, 404, 405, roles, 415 and 413. */
function registerGate(app: AdminApp, deps: AdminDependencies): void {
  const routes: RouteTable = new Map();
  app.decorateRequest('admin', null);
  app.decorateRequest('adminSession', null);
  app.decorateRequest('clientAddress', '');
  app.addHook('onRoute', (route) => {
    accessOf(route);
    recordRoute(routes, route);
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    checkHead(request.raw);
    request.clientAddress = requestAddress(request.raw);
    if (needsAuthentication(request)) {
      const { admin, session } = await authenticateCall(request, reply, deps);
      request.admin = admin;
      request.adminSession = session;
      deps.metrics.countAdmin();
      Object.assign(exchangeOf(request.raw), { requester: admin.display, method: admin.method });
    }
    if (isAdminPath(request.url)) checkSameSite(request.headers);
    if (request.adminSession !== null) {
      checkOwnPage(request);
      await deps.sessions.note(request.adminSession);
    }
    if (request.is404) refuseUnknown(request, reply, routes);
    if (request.admin !== null) {
      checkRole(request.admin, request);
      checkLabelRule(request);
    }
    if (announcesBody(request)) checkBodyHead(request, deps.settings.server.body_limit, request.routeOptions.config);
    if (expectsContinue(request.raw)) reply.raw.writeContinue();
  });
}

/** Every route that is not public, and every unknown path under /admin. */
function needsAuthentication(request: FastifyRequest): boolean {
  return request.is404 ? isAdminPath(request.url) : accessOf(request.routeOptions) !== 'public';
}

function refuseUnknown(request: FastifyRequest, reply: FastifyReply, routes: RouteTable): never {
  const allowed = allowedMethods(routes, request.url);
  if (allowed.length === 0) refuseTrailingSlash(request.url);
  if (allowed.length === 0) throw notFound('NOT_FOUND', 'nothing is served at this path');
  reply.header('allow', allowed.join(', '));
  throw errorWith(405, 'METHOD_NOT_ALLOWED', `this path supports ${allowed.join(', ')}`);
}

function registerErrorHandling(app: AdminApp, deps: AdminDependencies, exchanges: Exchanges): void {
  // Before the gate. After the body is read, code runs outside this context.
  app.addHook('onRequest', (request, reply, done) => {
    const exchange = exchanges.follow(request.raw, reply.raw);
    // The route instead of the path, which may contain a token pasted in place of an ID.
    if (!request.is404) exchange.operation = `${request.method} ${request.routeOptions.url ?? ''}`;
    void reply.header(REQUEST_ID_HEADER, exchange.requestId);
    runForRequest(exchange, done);
  });
  app.addHook('preValidation', (request, _reply, done) => runForRequest(exchangeOf(request.raw), done));
  app.setErrorHandler(async (error, request, reply) => {
    const answer = toErrorAnswer(error);
    if (answer.statusCode >= 500)
      deps.log.error(
        {
          request_id: request.id,
          code: answer.code,
          route: request.routeOptions.url,
          detail: describe(error),
        },
        answer.message,
      );
    const isAttempt = isChanging(request) || answer.code === 'ROLE_MISSING' || answer.code === 'LABEL_NOT_PERMITTED';
    if (request.admin !== null && !request.is404 && isAttempt) await auditRefusal(deps, request, answer.code);
    if (hasUnreadBody(request)) reply.header('connection', 'close');
    return sendError(reply, error);
  });
}

function sendError(reply: FastifyReply, error: unknown): FastifyReply {
  const answer = toErrorAnswer(error);
  const exchange = exchangeOf(reply.request.raw);
  exchange.code = answer.code;
  // The reason of a 5xx has a separate log entry.
  if (answer.statusCode < 500 && error instanceof EstuaryError) exchange.detail = error.detail;
  void reply.header(REQUEST_ID_HEADER, exchange.requestId);
  if (answer.statusCode === 401) reply.header('www-authenticate', 'Bearer');
  if (error instanceof EstuaryError && error.retryAfter !== undefined)
    reply.header('retry-after', String(error.retryAfter));
  return reply.code(answer.statusCode).type(JSON_TYPE).send(answer);
}

const JSON_TYPE = 'application/json; charset=utf-8';

function brokenRequestAnswer({ status, code, text }: Refusal): { type: string; body: string } {
  return { type: JSON_TYPE, body: JSON.stringify(errorAnswer(status, code, text)) };
}

/** Audits an administrator's call that changed nothing or exceeded the caller's roles. */
async function auditRefusal(deps: AdminDependencies, request: FastifyRequest, code: string): Promise<void> {
  try {
    await deps.store.audit([accessEvent(request, 'failure', code)]);
  } catch (error) {
    deps.log.error({ detail: describe(error) }, 'cannot audit a rejected admin call');
  }
}

/** Whether the client is still sending an unread body; the connection cannot be reused then. */
const hasUnreadBody = (request: FastifyRequest): boolean => announcesBody(request) && !request.raw.complete;
