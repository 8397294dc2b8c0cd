import fastifySwagger from '@fastify/swagger';
import { Type } from '@fastify/type-provider-typebox';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { accessOf, neededRoles } from './roles.ts';
import { errorResponses, strictObject } from './schemas.ts';
import { SESSION_COOKIE } from './caller.ts';
import { ADMIN_ROLES } from '../../config/vocabulary.ts';

/** Added to the finished description: the plugin's types stop at OpenAPI 3.0, which has no mutual TLS. */
const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A token of admin.bearer_token.tokens.' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The cookie that `POST /admin/session` has set; a call that changes something then comes with an `Origin`, or `Sec-Fetch-Site`.',
  },
  clientCertificate: { type: 'mutualTLS', description: 'A certificate that admin.tls.trust_anchors issued.' },
};
/** Any will do, as far as the configuration switches it on. Public routes say otherwise. */
const security = [{ bearer: [] }, { clientCertificate: [] }, { session: [] }];

/** Makes the OpenAPI description from the schemas of the routes that are registered after this call. */
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
        },
        url,
      };
    },
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Estuary admin API',
        description:
          'One-time passwords, certificates, requests for approval, devices, CAs, lockouts and the audit log of an EST (RFC 7030) server. `x-roles` of a call: the roles of which the caller needs one.',
        contact: { name: 'Whoever runs this server' },
        version: deps.version,
      },
      servers: [{ url: '/', description: 'The admin listener.' }],
      tags: [
        'otp',
        'certificates',
        'requests',
        'devices',
        'cas',
        'lockouts',
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

/** The description of a listener that is ready. */
export function describeApi(app: AdminApp): object {
  const { paths, ...rest } = app.swagger();
  const schemas: Record<string, unknown> = {};
  const shared = share(paths, schemas);
  return { ...rest, security, paths: shared, components: { schemas, securitySchemes } };
}

/**
 * Puts each object schema that has a title where it stands once, and a reference in its place.
 *
 * @throws TypeError where two have one title
 */
function share(node: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(node)) return node.map((one) => share(one, schemas));
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, share(value, schemas)]));
  const { title, type, ...schema } = copy;
  if (typeof title !== 'string' || type !== 'object') return copy;
  const one = { type, ...schema };
  const known = schemas[title] ?? one;
  if (JSON.stringify(known) !== JSON.stringify(one)) throw new TypeError(`two schemas have the title ${title}`);
  schemas[title] = one;
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

/** `GET /admin/openapi.json`. */
export function registerOpenApi(app: AdminApp): void {
  let description: object | undefined;
  app.get(
    '/admin/openapi.json',
    {
      config: { access: 'everybody' },
      schema: {
        summary: 'This description',
        tags: ['api'],
        querystring: strictObject({}),
        response: {
          200: Type.Unsafe<object>({ type: 'object', additionalProperties: true, description: 'OpenAPI 3.1.' }),
          ...errorResponses(400),
        },
      },
    },
    () => {
      description ??= describeApi(app);
      return description;
    },
  );
}
