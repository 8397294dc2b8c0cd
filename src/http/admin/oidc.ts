/** `/auth/oidc/login` and `/auth/oidc/callback`: signing in to the console at an OpenID provider (docs/guides/oidc.md). */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STATE_LIFETIME } from '../../auth/oidc/oidc-sign-in.ts';
import { cookieOf, setSession } from './caller.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { toErrorAnswer } from './json-body.ts';
import { errorResponses } from './schemas.ts';
import { signIn } from './session.ts';

/** What the browser must send back with the answer of the provider. `Lax`: that answer is a link from another site. */
const STATE_COOKIE = '__Host-estuary-oidc';
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax';
const setState = (sealed: string): string =>
  `${STATE_COOKIE}=${sealed}; ${ATTRIBUTES}; Max-Age=${STATE_LIFETIME / 1000}`;
const CLEAR_STATE = `${STATE_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;

/** A page of the browser, which redirects it. */
const toConsole = (summary: string) => ({
  config: { access: 'public' as const },
  errorHandler: sendPage,
  schema: {
    summary,
    tags: ['api'],
    security: [],
    response: {
      303: Type.Null({ description: 'To the provider, or back to the console.' }),
      ...errorResponses(404),
    },
  },
});

export function registerOidc(app: AdminApp, { authenticator, sessions }: AdminDependencies): void {
  app.get('/auth/methods', { config: { access: 'public' }, schema: { hide: true } }, () => ({
    oidc: authenticator.hasOidc,
  }));

  app.get('/auth/oidc/login', toConsole('Sign in to the console at the OpenID provider'), async (_request, reply) => {
    const { url, sealed } = await authenticator.beginOidc();
    return reply.header('set-cookie', setState(sealed)).redirect(url, 303);
  });

  app.get(
    '/auth/oidc/callback',
    toConsole('The answer of the OpenID provider: begins a session'),
    async (request, reply) => {
      const { search } = new URL(request.url, 'https://console.invalid');
      // One attempt for each cookie.
      void reply.header('set-cookie', CLEAR_STATE);
      const sealed = cookieOf(request.headers, STATE_COOKIE);
      request.admin = await authenticator.completeOidc(search, sealed, request.clientAddress);
      const { id } = await signIn(request, sessions);
      return reply.header('set-cookie', setSession(id)).redirect('/', 303);
    },
  );
}

/** A browser shows what came of it, so the error is a page unless JSON is wanted. */
function sendPage(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  if (!(request.headers.accept ?? '').includes('text/html')) throw error;
  const { statusCode, message } = toErrorAnswer(error);
  reply
    .code(statusCode)
    .headers({
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
    })
    .type('text/html; charset=utf-8')
    .send(
      `<!doctype html><html lang="en"><title>Estuary</title><h1>Not signed in</h1><p>${escapeHtml(message)}.</p><p><a href="/">Back to the console</a></p></html>`,
    );
}

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
