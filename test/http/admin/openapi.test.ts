import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../support/openssl.ts';
import { ROOT } from '../../support/root.ts';
import { adminFixture } from './support.ts';

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema?: object }[];
  readonly requestBody?: {
    content: Record<string, { schema: { required?: string[]; additionalProperties?: boolean } }>;
  };
  readonly responses: Record<string, { description?: string; content?: Record<string, { schema: Schema }> }>;
}
interface Schema {
  readonly $ref?: string;
  readonly properties?: Record<string, unknown>;
}
interface Description {
  readonly openapi: string;
  readonly info: { title: string; version: string };
  readonly security: readonly object[];
  readonly components: {
    securitySchemes: Record<string, { type: string; scheme?: string }>;
    schemas: Record<string, Schema>;
  };
  readonly paths: Record<string, Record<string, Operation>>;
}

/** Expected calls: method, path, success, other statuses in addition to 401, 500 and 503. */
const CALLS: readonly (readonly [method: string, path: string, success: string, failures: readonly string[]])[] = [
  ['post', '/admin/otp', '201', ['400', '409', '413', '415']],
  ['post', '/admin/otp/bulk', '200', ['400', '409', '413', '415']],
  ['get', '/admin/otp', '200', ['400']],
  ['get', '/admin/otp/{id}', '200', ['404']],
  ['delete', '/admin/otp/{id}', '204', ['404']],
  ['patch', '/admin/otp/{id}', '200', ['400', '404', '409', '413', '415']],
  ['post', '/admin/certificates/revoke', '200', ['400', '409', '413', '415']],
  ['get', '/admin/certificates', '200', ['400']],
  ['post', '/admin/certificates', '201', ['400', '409', '413', '415']],
  ['get', '/admin/certificates/{serial}', '200', ['400', '404']],
  ['post', '/admin/cas/{label}/crl', '200', ['400', '404', '409']],
  ['post', '/admin/certificates/{serial}/release', '200', ['400', '404', '409']],
  ['get', '/admin/notifications', '200', ['400']],
  ['post', '/admin/notifications/{name}/test', '200', ['400', '404', '503']],
  ['post', '/admin/renewals', '201', ['400', '413', '415']],
  ['get', '/admin/renewals', '200', ['400']],
  ['get', '/admin/renewals/{id}', '200', ['400', '404']],
  ['delete', '/admin/renewals/{id}', '204', ['400', '404']],
  ['post', '/admin/certificates/{serial}/revoke', '200', ['400', '404', '409', '413', '415']],
  ['post', '/admin/certificates/{serial}/rescue', '201', ['400', '404', '409', '413', '415']],
  ['delete', '/admin/certificates/{serial}/rescue', '204', ['400', '404']],
  ['get', '/admin/cas/{label}/rollover', '200', ['404']],
  ['get', '/admin/fleet', '200', ['400']],
  ['get', '/admin/fleet/summary', '200', []],
  ['get', '/admin/requests', '200', ['400']],
  ['get', '/admin/requests/{id}', '200', ['404']],
  ['post', '/admin/requests/{id}/approve', '200', ['400', '404', '409', '413', '415']],
  ['post', '/admin/requests/{id}/reject', '200', ['400', '404', '409', '413', '415']],
  ['post', '/admin/devices', '201', ['400', '409', '413', '415']],
  ['get', '/admin/devices', '200', ['400']],
  ['get', '/admin/devices/{id}', '200', ['404']],
  ['patch', '/admin/devices/{id}', '200', ['400', '404', '413', '415']],
  ['delete', '/admin/devices/{id}', '204', ['400', '404']],
  ['get', '/admin/cas', '200', ['400']],
  ['get', '/admin/cas/{label}', '200', ['404']],
  ['get', '/admin/cas/{label}/revocation', '200', ['404']],
  ['get', '/admin/certificates/{serial}/chain', '200', ['400', '404']],
  ['get', '/admin/requests/{id}/check', '200', ['404', '409']],
  ['get', '/admin/lockouts', '200', ['400']],
  ['delete', '/admin/lockouts/{key}', '204', ['404']],
  ['get', '/admin/audit', '200', ['400']],
  ['post', '/admin/check', '200', ['400', '413', '415']],
  ['post', '/admin/reload', '200', ['400', '409']],
  ['get', '/admin/overview', '200', ['400']],
  ['get', '/admin/events', '200', ['400']],
  ['get', '/admin/history', '200', ['400']],
  ['get', '/admin/configuration', '200', ['400']],
  ['get', '/admin/statistics', '200', ['400']],
  ['get', '/admin/service', '200', ['400']],
  ['get', '/admin/session', '200', ['400', '403']],
  ['post', '/admin/session', '201', ['400', '403']],
  ['delete', '/admin/session', '204', ['400', '404']],
  ['get', '/admin/openapi.json', '200', []],
];

async function description(): Promise<Description> {
  const { call } = await adminFixture();
  const response = await call('GET', '/admin/openapi.json');
  expect(response.statusCode).toBe(200);
  expect(response.headers['content-type']).toMatch(/^application\/json/);
  return JSON.parse(response.body) as Description;
}

/** Of the schema, or of the one that it refers to. */
function properties({ components }: Description, operation: Operation | undefined, status: string): string[] {
  const schema = operation?.responses[status]?.content?.['application/json']?.schema;
  const name = schema?.$ref?.replace('#/components/schemas/', '');
  return Object.keys((name === undefined ? schema : components.schemas[name])?.properties ?? {});
}

describe('GET /admin/openapi.json', () => {
  it('is OpenAPI 3.1 with the ways to authenticate, any of which will do', async () => {
    const { openapi, info, security, components } = await description();
    expect(openapi).toMatch(/^3\.1\.\d+$/);
    expect(info).toMatchObject({ title: 'Estuary admin API', version: '0.0.0-test' });
    expect(components.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer' },
      clientCertificate: { type: 'mutualTLS' },
      session: { type: 'apiKey' },
    });
    expect(security).toEqual([{ bearer: [] }, { clientCertificate: [] }, { session: [] }]);
  });

  it('describes every call, with its statuses', async () => {
    const document = await description();
    const { paths } = document;
    for (const [method, path, success, failures] of CALLS) {
      const operation = paths[path]?.[method];
      expect(operation, `${method} ${path}`).toBeDefined();
      expect(Object.keys(operation?.responses ?? {}), `${method} ${path}`).toEqual(
        expect.arrayContaining([success, ...failures, '401', '403', '500', '503']),
      );
      expect(operation?.summary).toMatch(/./);
      expect(operation?.security, `${method} ${path} needs authentication`).toBeUndefined();
      for (const status of [...failures, '401'])
        expect(properties(document, operation, status)).toEqual(['statusCode', 'error', 'code', 'message']);
    }
  });

  it('describes nothing that is not there: health, metrics and single sign-on are added; health needs no authentication', async () => {
    const { paths } = await description();
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    const expected = CALLS.map(([method, path]) => `${method} ${path}`);
    const others = ['/auth/oidc/callback', '/auth/oidc/login', '/healthz', '/metrics', '/readyz'];
    expect(described.sort()).toEqual([...expected, ...others.map((path) => `get ${path}`)].sort());
    expect(paths['/healthz']?.['get']?.security).toEqual([]);
    expect(paths['/readyz']?.['get']?.security).toEqual([]);
    expect(Object.keys(paths['/readyz']?.['get']?.responses ?? {}).sort()).toEqual(['200', '404', '503']);
  });

  it('every parameter and every response is described, and path parameters match the path', async () => {
    const { paths } = await description();
    for (const [path, methods] of Object.entries(paths))
      for (const [method, { parameters = [], responses }] of Object.entries(methods)) {
        const named = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
        const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        expect(named, `${method} ${path}`).toEqual(inPath);
        for (const parameter of parameters) expect(parameter.schema, `${path} ${parameter.name}`).toBeDefined();
        for (const [status, response] of Object.entries(responses))
          expect(response.description, `${method} ${path} ${status}`).not.toMatch(/^(Default Response)?$/);
      }
  });

  it('shows the bounds that are enforced', async () => {
    const { paths, components } = await description();
    const body = paths['/admin/otp']?.['post']?.requestBody?.content['application/json']?.schema;
    expect(body).toEqual({ $ref: '#/components/schemas/NewToken' });
    expect(components.schemas['NewToken']).toMatchObject({
      required: ['client_id'],
      additionalProperties: false,
      properties: {
        client_id: { minLength: 1, maxLength: 255 },
        max_uses: { type: 'integer', minimum: 1, maximum: 1_000_000 },
        expires_at: { format: 'date-time' },
      },
    });
    const limit = paths['/admin/otp']?.['get']?.parameters?.find(({ name }) => name === 'limit');
    expect(limit?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 1000, default: 100 });
  });

  it('passes Spectral, without a warning', async () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const file = folder.file('openapi.json');
    writeFileSync(file, JSON.stringify(await description(), undefined, 1));
    const found = await new Promise<string>((resolve) => {
      const args = ['lint', '--ruleset', join(ROOT, '.spectral.yaml'), '--fail-severity', 'hint', file];
      execFile(join(ROOT, 'node_modules', '.bin', 'spectral'), args, { timeout: 60_000 }, (error, stdout, stderr) =>
        resolve(error === null ? '' : `${stdout}${stderr}`),
      );
    });
    expect(found).toBe('');
  });

  it('every call and every shared schema has a unique name', async () => {
    const { paths, components } = await description();
    const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(['getHealthz', 'getOtpById', 'postCertificatesBySerialRevoke']));
    const text = JSON.stringify(paths);
    for (const name of Object.keys(components.schemas))
      expect(`${text}${JSON.stringify(components.schemas)}`).toContain(`"#/components/schemas/${name}"`);
    expect(text).not.toMatch(/"title"/);
  });
});
