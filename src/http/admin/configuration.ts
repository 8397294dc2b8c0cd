import { Type } from '@fastify/type-provider-typebox';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, nullable, strictObject, Timestamp } from './schemas.ts';
import { formatTimestamp } from './timestamps.ts';

const Configuration = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        {
          key: Type.String({ description: 'Such as `ca[devices].profile.validity_days`.' }),
          value: Type.Any({ description: 'A text, a number, true or false, or a list; `[secret]` for a secret.' }),
          live: Type.Boolean({ description: 'A reload applies a change; otherwise the next start does.' }),
        },
        { title: 'ConfigurationKey' },
      ),
      { description: 'Every key that has a value, its default where nobody gave one, in the order of the reference.' },
    ),
    reload: nullable(
      Type.Object(
        { at: Timestamp(), ok: Type.Boolean({ description: 'false: what is in force is not what the file says.' }) },
        { description: 'The last one; null: none since the start.' },
      ),
    ),
  },
  { title: 'Configuration', description: 'What is in force.' },
);

/** `GET /admin/configuration`. */
export function registerConfiguration(app: AdminApp, deps: AdminDependencies): void {
  app.get(
    '/admin/configuration',
    {
      config: { access: ['operator'] },
      schema: {
        summary: 'The configuration in force, without its secrets',
        description: 'What the file would change of it, `POST /admin/reload?dry_run=true` says.',
        tags: ['health'],
        querystring: strictObject({}),
        response: { 200: Configuration, ...errorResponses(400) },
      },
    },
    () => {
      const { lastReload } = deps.condition();
      return {
        keys: deps.configuration().map((one) => ({ ...one })),
        reload: lastReload === undefined ? null : { at: formatTimestamp(lastReload.at), ok: lastReload.ok },
      };
    },
  );
}
