import { Type, type Static } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { alreadyRevoked, checkOrder, revoke, type RevocationOrder } from '../../administration/revoke.ts';
import { REVOCATION_REASONS } from '../../pki/x509/crl.ts';
import type { ListedCertificate, RevokeResult } from '../../store/certificate-store.ts';
import { accessEvent, actor } from './access.ts';
import { CertificateRecord, certificateNotFound, certificateRecord, findCertificate } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, oneOf, strictObject, Timestamp } from './schemas.ts';
import { parseTimestamp } from './timestamps.ts';

/** Why, and since when. */
export const revocationOrder = {
  reason: Type.Optional(
    oneOf(REVOCATION_REASONS, { description: 'An RFC 5280 CRLReason name; `unspecified` unless given.' }),
  ),
  invalidity_date: Type.Optional(
    Timestamp('Since when the key is thought to be compromised or the certificate wrong; not in the future.'),
  ),
};
const Order = strictObject(revocationOrder, { title: 'Revocation' });

/** `POST /admin/certificates/{serial}/revoke`. */
export function registerRevocation(app: AdminApp, deps: AdminDependencies): void {
  app.post(
    '/admin/certificates/:serial/revoke',
    {
      config: { access: ['ra'] },
      schema: {
        summary: 'Revoke a certificate: it authenticates nobody from now on',
        description: 'There is no way back, also from `certificateHold`. The body may be left out.',
        tags: ['certificates'],
        params: Type.Object({ serial: Type.String({ description: 'Hex.' }) }),
        querystring: strictObject({
          ca: Type.Optional(Type.String({ maxLength: 255, description: "A CA's label." })),
        }),
        body: Order,
        response: { 200: CertificateRecord, ...errorResponses(400, 404, 409, 413, 415) },
      },
      preValidation: (request, _reply, done) => {
        const body: unknown = request.body;
        if (body === undefined) request.body = {};
        done();
      },
    },
    async (request) => {
      const now = deps.now();
      const order = readRevocationOrder(request.body, now);
      const row = await findCertificate(deps.store, request.params.serial, request.query.ca);
      if (row.revoked_at !== null) throw alreadyRevoked();
      switch (await revokeByCall(deps, request, row, order)) {
        case 'revoked':
          return certificateRecord({ ...row, ...order }, now);
        case 'already-revoked':
          throw alreadyRevoked();
        case 'unknown':
          throw certificateNotFound();
      }
    },
  );
}

/** @throws EstuaryError 400: `invalidity_date` is in the future */
export function readRevocationOrder(
  { reason = 'unspecified', invalidity_date: since }: Static<typeof Order>,
  now: number,
): RevocationOrder {
  const invalidity_date = since === undefined ? null : parseTimestamp('invalidity_date', since);
  const order = { reason, invalidity_date, revoked_at: now };
  checkOrder(order);
  return order;
}

/** Revokes for an administrator. @throws EstuaryError 500, 503 */
export function revokeByCall(
  deps: AdminDependencies,
  request: FastifyRequest,
  row: ListedCertificate,
  order: RevocationOrder,
): Promise<RevokeResult> {
  const access = accessEvent(request, 'success', `certificate ${row.serial} of ${row.ca} revoked`);
  return revoke(deps, row, order, actor(request), [access]);
}
