/** `GET /admin/requests/{id}/check`: a dry run of the approval of a queued request. */
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
      given: Type.Integer({ description: 'Administrators who have approved the request.' }),
      needed: Type.Integer({ description: 'Administrators who must approve the request.' }),
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
        summary: 'Check what an approval of a request would lead to, without effect',
        description:
          'Runs the checks that follow an approval, up to the reservation. 409 `VERDICT_UNKNOWN`: they depend on what the requester presents at its next poll. ' +
          '409 `REQUEST_DECIDED` or `DECIDED_AT_CA`: the request cannot be decided here.',
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
        throw conflict('DECIDED_AT_CA', 'this request waits at the CA, whose agents decide about it');
      if (state !== 'pending' && state !== 'approved')
        throw conflict('REQUEST_DECIDED', 'this request is no longer pending');
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
