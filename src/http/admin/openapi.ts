import fastifySwagger from '@fastify/swagger';
import { Type } from '@fastify/type-provider-typebox';
import { ADMIN_ROLES } from '../../config/vocabulary.ts';
import { SESSION_COOKIE } from './caller.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { accessOf, neededRoles } from './access.ts';
import { route } from './route.ts';

/** Known paths and their methods, to distinguish 404 and 405: Fastify returns 404 for both. */

export type RouteTable = Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>;

/** Records a route from Fastify's `onRoute` hook. */
export function recordRoute(table: RouteTable, route: { url: string; method: string | readonly string[] }): void {
  const known = table.get(route.url) ?? { pattern: toPattern(route.url), methods: new Set<string>() };
  for (const method of typeof route.method === 'string' ? [route.method] : route.method) known.methods.add(method);
  table.set(route.url, known);
}

/** The methods of a request's path, sorted; empty if it is unknown. */
export function allowedMethods(table: RouteTable, url: string): string[] {
  const path = pathOf(url);
  const methods = [...table.values()]
    .filter(({ pattern }) => pattern.test(path))
    .flatMap((route) => [...route.methods]);
  return [...new Set(methods)].sort();
}

/** Whether a request's path is /admin or below, in any encoding. */
export function isAdminPath(url: string): boolean {
  return /^\/+admin(?:\/|$)/i.test(pathOf(url));
}

function toPattern(url: string): RegExp {
  const segments = url
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replaceAll('.', '\\.')));
  return new RegExp(`^${segments.join('/')}$`);
}

/** The path without query, with each segment decoded if possible; an encoded slash stays in its segment. */
function pathOf(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? '';
  return path
    .split('/')
    .map((segment) => decode(segment).replaceAll('/', '%2F'))
    .join('/');
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Added to the description: the plugin's types stop at OpenAPI 3.0, which lacks mutual TLS. */
const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A token from admin.bearer_token.tokens.' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The cookie that `POST /admin/session` sets. A call that changes something must also have `Origin` or `Sec-Fetch-Site`.',
  },
  clientCertificate: { type: 'mutualTLS', description: 'A certificate that a CA in admin.tls.trust_anchors issued.' },
};
/** Any enabled scheme suffices. Public routes override this. */
const security = [{ bearer: [] }, { clientCertificate: [] }, { session: [] }];

/** Generates the OpenAPI description from the schemas of routes that are registered after this call. */
export function registerSwagger(app: AdminApp, deps: AdminDependencies): void {
  app.register(fastifySwagger, {
    transform: ({ schema, url, route }) => {
      const access = accessOf(route);
      const roles = access === 'public' ? undefined : (neededRoles(access) ?? ADMIN_ROLES);
      const { summary = '' } = schema;
      return {
        schema: {
          operationId: operationId(String(route.method), url),
          description: `${summary}.`,
          ...schema,
          ...(roles === undefined ? {} : { 'x-roles': roles }),
          ...(route.config?.labels === undefined ? {} : { 'x-labels': route.config.labels }),
        },
        url,
      };
    },
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Estuary admin API',
        description:
          'One-time passwords, certificates, requests for approval, devices, CAs, lockouts and the audit log of an EST (RFC 7030) server. `x-roles` of a call lists the roles; the caller needs one of them. ' +
          '`x-labels`: `records`, if a caller whose roles are limited to labels sees and changes only records of these labels; `none`, if labels do not matter. Such a caller may not make other calls.',
        contact: { name: 'The operator of this server' },
        version: deps.version,
      },
      servers: [{ url: '/', description: 'The admin listener.' }],
      tags: [
        'otp',
        'certificates',
        'requests',
        'devices',
        'fleet',
        'cas',
        'lockouts',
        'renewals',
        'notifications',
        'audit',
        'statistics',
        'health',
        'api',
      ].map((name) => ({
        name,
      })),
    },
  });
}

/** The description, once the listener is ready. */
export function describeApi(app: AdminApp): object {
  const { paths, ...rest } = app.swagger();
  const schemas: Record<string, unknown> = {};
  const shared = share(paths, schemas);
  return { ...rest, security, paths: shared, components: { schemas, securitySchemes } };
}

/**
 * Moves each object schema with a title to the shared schemas and replaces it with a reference.
 * @throws TypeError if two have the same title
 */
function share(node: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(node)) return node.map((element) => share(element, schemas));
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, share(value, schemas)]));
  const { title, type, ...schema } = copy;
  if (typeof title !== 'string' || type !== 'object') return copy;
  const component = { type, ...schema };
  const known = schemas[title] ?? component;
  if (JSON.stringify(known) !== JSON.stringify(component)) throw new TypeError(`two schemas have the title ${title}`);
  schemas[title] = component;
  return { $ref: `#/components/schemas/${title}` };
}

/** `getCertificatesBySerial` for `GET /admin/certificates/:serial`. */
function operationId(method: string, url: string): string {
  const words = url
    .split(/[/.]/)
    .filter((part) => part !== '' && part !== 'admin')
    .map((part) => (part.startsWith(':') ? `By${capital(part.slice(1))}` : capital(part)));
  return `${method.toLowerCase()}${words.join('')}`;
}

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

export function registerOpenApi(app: AdminApp): void {
  let description: object | undefined;
  route(app, {
    call: 'GET /admin/openapi.json',
    access: 'everybody',
    labels: 'none',
    summary: 'Get this description',
    tag: 'api',
    response: { 200: Type.Unsafe<object>({ type: 'object', additionalProperties: true, description: 'OpenAPI 3.1.' }) },
    handler: () => {
      description ??= describeApi(app);
      return description;
    },
  });
}
