/** `GET /admin/requests/{id}/check`: what the approval of a queued request would come to, for whoever decides about it. */
import { Type } from '@fastify/type-provider-typebox';
import { approvalsNeeded, findRequest } from '../../administration/decide.ts';
import { conflict } from '../../errors.ts';
import { stateOf } from '../../store/request-state.ts';
import { checkAnswer, checkProperties } from './check.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, strictObject } from './schemas.ts';

const RequestCheck = Type.Object(
  {
    ...checkProperties,
    approvals: Type.Object({
      given: Type.Integer({ description: 'Administrators who have approved it.' }),
      needed: Type.Integer({ description: 'Administrators who must approve it.' }),
    }),
  },
  { title: 'RequestCheck', description: 'What would happen.' },
);

export function registerRequestCheck(app: AdminApp, deps: AdminDependencies): void {
  app.get(
    '/admin/requests/:id/check',
    {
      config: { access: ['ra', 'auditor'] },
      schema: {
        summary: 'What would become of a request if it was approved now, and nothing does',
        description:
          'Whoever asked, and however: the same checks as when an approved request is asked for again, up to the reservation. 409 `VERDICT_UNKNOWN` where they hang on what ' +
          'the requester shows then; 409 `REQUEST_DECIDED` or `DECIDED_AT_CA` where nobody decides about it here.',
        tags: ['requests'],
        params: Type.Object({ id: Type.String() }),
        querystring: strictObject({}),
        response: { 200: RequestCheck, ...errorResponses(400, 404, 409) },
      },
    },
    async ({ params, id: requestId, clientAddress: address }) => {
      const row = await findRequest(deps, params.id);
      const state = stateOf(row);
      if (state === 'pending at the CA')
        throw conflict('DECIDED_AT_CA', 'this request waits at the CA, where its agents decide about it');
      if (state !== 'pending' && state !== 'approved')
        throw conflict('REQUEST_DECIDED', 'this request is not pending any more');
      const ca = deps.cas.all.find(({ label }) => label === row.ca);
      if (ca === undefined) throw conflict('VERDICT_UNKNOWN', 'its CA is no longer configured');
      const verdict = await deps.rehearsal.queued({ requestId, address, ca, row });
      return {
        ...checkAnswer(verdict),
        approvals: { given: row.decided_by.length, needed: approvalsNeeded(deps, row) },
      };
    },
  );
}
