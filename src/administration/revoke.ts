/** Revokes certificates: the rules for every way in (docs/revocation.md). */
import { type By, certificateRevoked } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { CaRouter } from '../ca/router.ts';
import { badRequest, conflict, type EstuaryError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { REVOCATION_REASONS } from '../pki/x509/crl.ts';
import type { CertificateStore, ListedCertificate, Revocation, RevokeResult } from '../store/certificate-store.ts';

export interface RevocationContext {
  readonly store: Pick<CertificateStore, 'getCertificates' | 'revokeCertificate'>;
  readonly cas: Pick<CaRouter, 'issuers'>;
  readonly log: Pick<Logger, 'warn'>;
}

/** Reason and time of a revocation. */
export type RevocationOrder = Pick<Revocation, 'reason' | 'invalidity_date' | 'revoked_at'>;

/** @throws EstuaryError 400 if the reason is not a revocation, or the invalidity date is in the future */
export function checkOrder({ reason, invalidity_date, revoked_at }: RevocationOrder): void {
  if (!REVOCATION_REASONS.some((one) => one === reason))
    throw badRequest('FIELD_INVALID', `reason must be one of ${REVOCATION_REASONS.join(', ')}, not ${reason}`);
  if (invalidity_date !== null && invalidity_date > revoked_at)
    throw badRequest('FIELD_INVALID', 'invalidity_date must not be in the future');
}

/**
 * Informs a remote CA first; if it is unreachable, nothing is revoked. A CA that is no longer configured is not
 * informed.
 * @param by who revokes, and from where
 * @param further events to commit before the revocation's own
 * @throws EstuaryError 500, 503: nothing changed
 */
export async function revoke(
  { store, cas, log }: RevocationContext,
  row: ListedCertificate,
  order: RevocationOrder,
  by: By,
  further: readonly AuditEvent[] = [],
): Promise<RevokeResult> {
  const { ca, serial } = row;
  const { reason } = order;
  const known = cas.issuers.find(({ label }) => label === ca);
  if (known === undefined) log.warn({ ca, serial }, 'revoked here only: the CA is no longer configured');
  else {
    const [recorded] = known.ownIsRecorded ? await store.getCertificates(serial, ca) : [];
    await known.driver.revoke({ serial, reason, ...(recorded && { certificate: recorded.der }) });
  }
  return store.revokeCertificate({ ca, serial, ...order }, [...further, certificateRevoked(by, row, order)]);
}

export const alreadyRevoked = (): EstuaryError => conflict('ALREADY_REVOKED', 'the certificate is already revoked');
