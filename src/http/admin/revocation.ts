import { Type, type Static } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { AuditEvent } from '../../audit/event.ts';
import { badRequest, conflict } from '../../errors.ts';
import { auditedCertificate } from '../../enrollment/certificate-row.ts';
import { REVOCATION_REASONS } from '../../pki/x509/crl-reasons.ts';
import type { CertificateRow, Revocation, RevokeResult } from '../../store/certificate-store.ts';
import { accessEvent, actor } from './access.ts';
import { CertificateRecord, certificateNotFound, certificateRecord, findCertificate } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, oneOf, strictObject, Timestamp } from './schemas.ts';
import { formatTimestamp, parseTimestamp } from './timestamps.ts';

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
      const { reason, invalidity_date } = readRevocationOrder(request.body, now);
      const row = await findCertificate(deps.store, request.params.serial, request.query.ca);
      if (row.revoked_at !== null) throw alreadyRevoked();
      const revocation = { ca: row.ca, serial: row.serial, revoked_at: now, reason, invalidity_date };
      switch (await revoke(deps, request, row, revocation)) {
        case 'revoked':
          return certificateRecord({ ...row, ...revocation }, now);
        case 'already-revoked':
          throw alreadyRevoked();
        case 'unknown':
          throw certificateNotFound();
      }
    },
  );
}

/** Tells the CA, then the store. @throws EstuaryError 500, 503: the CA cannot be told, and nothing changed */
export async function revoke(
  deps: AdminDependencies,
  request: FastifyRequest,
  row: Pick<CertificateRow, 'label' | 'subject'>,
  revocation: Revocation,
): Promise<RevokeResult> {
  await tellCa(deps, revocation);
  return deps.store.revokeCertificate(revocation, auditEvents(request, row, revocation));
}

/** @throws EstuaryError 400: `invalidity_date` is in the future */
export function readRevocationOrder(
  { reason = 'unspecified', invalidity_date }: Static<typeof Order>,
  now: number,
): Pick<Revocation, 'reason' | 'invalidity_date'> {
  if (invalidity_date === undefined) return { reason, invalidity_date: null };
  const since = parseTimestamp('invalidity_date', invalidity_date);
  if (since > now) throw badRequest('FIELD_INVALID', 'invalidity_date must not be in the future');
  return { reason, invalidity_date: since };
}

/**
 * Before our own store: when a remote CA cannot be told now, nothing is answered as done. A label that is no longer
 * configured leaves nobody to tell.
 */
async function tellCa(deps: AdminDependencies, { ca, serial, reason }: Revocation): Promise<void> {
  const known = deps.cas.issuers.find(({ label }) => label === ca);
  if (known === undefined) deps.log.warn({ ca, serial }, 'revoked here only: the CA is no longer configured');
  else if (!known.ownIsRecorded) await known.driver.revoke({ serial, reason });
  else {
    const [row] = await deps.store.getCertificates(serial, ca);
    await known.driver.revoke({ serial, reason, ...(row === undefined ? {} : { certificate: row.der }) });
  }
}

function auditEvents(
  request: FastifyRequest,
  row: Pick<CertificateRow, 'label' | 'subject'>,
  { ca, serial, reason, invalidity_date }: Revocation,
): AuditEvent[] {
  const since = invalidity_date === null ? '' : `, invalid since ${formatTimestamp(invalidity_date)}`;
  return [
    accessEvent(request, 'success', `certificate ${serial} of ${ca} revoked`),
    {
      type: 'certificate.revoked',
      outcome: 'success',
      ...actor(request),
      ...auditedCertificate({ ca, serial, label: row.label }),
      detail: `${row.subject}: ${reason}${since}`,
    },
  ];
}

const alreadyRevoked = () => conflict('ALREADY_REVOKED', 'the certificate is revoked already');
