import { Type } from '@fastify/type-provider-typebox';
import { AUDIT_TYPES } from '../../audit/event.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { mapPage, pageRequest } from './paging.ts';
import { errorResponses, listOf, oneOf, pageQuery, strictObject, Timestamp } from './schemas.ts';
import { parseTimestamp } from './timestamps.ts';

const type = oneOf(AUDIT_TYPES);

const Record = Type.Object(
  {
    seq: Type.Integer(),
    time: Timestamp(),
    type,
    outcome: oneOf(['success', 'failure']),
    subject: Type.Optional(Type.String({ description: 'Who.' })),
    address: Type.Optional(Type.String({ description: "The client's network address." })),
    ca: Type.Optional(Type.String()),
    serial: Type.Optional(Type.String()),
    request_id: Type.Optional(Type.String()),
    detail: Type.Optional(Type.String()),
    prev_hash: Type.String({ description: 'The hash of the record before.' }),
    hash: Type.String({ description: 'SHA-256, hex.' }),
  },
  { description: 'A record as in the audit file; what does not apply is absent.' },
);

/** `GET /admin/audit`. */
export function registerAudit(app: AdminApp, deps: AdminDependencies): void {
  app.get(
    '/admin/audit',
    {
      schema: {
        summary: 'The audit records',
        tags: ['audit'],
        querystring: strictObject({
          since: Type.Optional(Timestamp('Records of this time and later.')),
          type: Type.Optional(type),
          ...pageQuery,
        }),
        response: { 200: listOf(Record, 'Oldest first.'), ...errorResponses(400) },
      },
    },
    async (request) => {
      const { since, type: wanted } = request.query;
      const page = await deps.store.listAudit({
        since: since === undefined ? undefined : parseTimestamp('since', since),
        type: wanted,
        ...pageRequest(request.query),
      });
      return mapPage(page, (record) => ({ ...record }));
    },
  );
}
