/** `/admin/certificates/{serial}/rescue`: one more renewal with an expired certificate. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { certificateRescued, certificateRescueEnded } from '../../audit/applied-events.ts';
import { conflict, notFound } from '../../errors.ts';
import { accessEvent, actor, limited } from './access.ts';
import { caQuery, certificateNotFound, CertificateRecord, certificateRecord, findCertificate } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { route } from './route.ts';
import { requestBody } from './schemas.ts';

/** 30 days. */
const MAX_SECONDS = 2_592_000;

const Order = requestBody('Rescue', 'How long the certificate may be used for one more renewal.', {
  for_seconds: Type.Integer({
    minimum: 1,
    maximum: MAX_SECONDS,
    description: 'From now on, or from its expiry on if it has not expired.',
  }),
  reason: Type.Optional(Type.String({ maxLength: 1000, description: 'For the audit log.' })),
});

export function registerRescue(app: AdminApp, deps: AdminDependencies): void {
  const { mode } = deps.settings.tls.client_auth;
  const find = (
    store: Parameters<typeof findCertificate>[0],
    { params, query }: FastifyRequest<{ Params: { serial: string }; Querystring: { ca?: string } }>,
  ) => findCertificate(store, params.serial, query.ca);

  route(app, {
    call: 'POST /admin/certificates/:serial/rescue',
    access: ['ra'],
    labels: 'records',
    summary: 'Let a certificate authenticate one more renewal although it has expired',
    description:
      'For simplereenroll only. Neither its expiry nor the validity of its issuers counts. A second call replaces the time.',
    query: { ca: caQuery },
    body: Order,
    response: { 201: CertificateRecord },
    errors: [409],
    handler: async (request, reply) => {
      const now = deps.now();
      const { for_seconds, reason = null } = request.body;
      const { store } = limited(deps, request);
      const row = await find(store, request);
      await deps.fleet.refresh();
      if (mode === 'required' || mode === 'none')
        throw conflict(
          'RESCUE_IMPOSSIBLE',
          `an expired certificate cannot be presented with tls.client_auth.mode = "${mode}": use another mode`,
        );
      const { ca, serial } = row;
      const until = Math.max(now, row.not_after) + for_seconds * 1000;
      const by = actor(request);
      const order = { ca, serial, until, reason, created_at: now, created_by: by.subject };
      const result = await store.rescueCertificate(order, [
        accessEvent(request, 'success', `certificate ${serial} of ${ca} rescued`),
        certificateRescued(by, row, until, reason ?? undefined),
      ]);
      switch (result) {
        case 'rescued':
          return reply.code(201).send(certificateRecord({ ...row, rescue_until: until }, now));
        case 'revoked':
          throw conflict('RESCUE_OF_REVOKED', 'the certificate is revoked, so it authenticates nobody');
        case 'replaced':
          throw conflict('RESCUE_NEEDLESS', 'a newer certificate of the same holder has been used: renew that one');
        case 'unknown':
          throw certificateNotFound();
      }
    },
  });

  route(app, {
    call: 'DELETE /admin/certificates/:serial/rescue',
    access: ['ra'],
    labels: 'records',
    summary: 'End the pass of a certificate for one more renewal, or the repeats of that renewal',
    query: { ca: caQuery },
    response: { 204: Type.Null({ description: 'Ended.' }) },
    handler: async (request, reply) => {
      const { store } = limited(deps, request);
      const row = await find(store, request);
      const about = `pass of certificate ${row.serial} of ${row.ca} ended`;
      const access = accessEvent(request, 'success', about);
      const { operation } = access;
      const by = { ...actor(request), ...(operation === undefined ? {} : { operation }) };
      const ended = certificateRescueEnded(by, row, about);
      if (!(await store.endRescue(row, deps.now(), [access, ended])))
        throw notFound('RESCUE_NOT_FOUND', 'the certificate has no pass for one more renewal');
      return reply.code(204).send(null);
    },
  });
}
