import fastifySwagger from '@fastify/swagger';
import { Type } from '@fastify/type-provider-typebox';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { accessOf, neededRoles } from './roles.ts';
import { errorResponses, strictObject } from './schemas.ts';
import { SESSION_COOKIE } from './session-cookie.ts';
import { ADMIN_ROLES } from '../../config/admin-roles.ts';

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
      return { schema: { ...schema, ...(roles === undefined ? {} : { 'x-roles': roles }) }, url };
    },
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Estuary admin API',
        description:
          'One-time passwords, certificates, requests for approval, devices, CAs, lockouts and the audit log of an EST (RFC 7030) server. `x-roles` of a call: the roles of which the caller needs one.',
        version: deps.version,
      },
      tags: ['otp', 'certificates', 'requests', 'devices', 'cas', 'lockouts', 'audit', 'health', 'api'].map((name) => ({
        name,
      })),
    },
  });
}

/** `GET /admin/openapi.json`. */
export function registerOpenApi(app: AdminApp): void {
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
      const description = app.swagger();
      const components = 'components' in description ? description.components : {};
      return { ...description, security, components: { ...components, securitySchemes } };
    },
  );
}
