/** Revokes certificates: the rules for every way in (docs/guides/revocation.md). */
import { type By, certificateReleased, certificateRevoked } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { CaRouter } from '../ca/router.ts';
import { badRequest, conflict, type EstuaryError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type CrlReason, REVOCATION_REASONS } from '../pki/x509/crl.ts';
import type {
  CertificateStore,
  ListedCertificate,
  ReleaseResult,
  Revocation,
  RevokeResult,
} from '../store/certificate-store.ts';

/** The only reason that is not final. */
const HOLD: CrlReason = 'certificateHold';

export interface RevocationContext {
  readonly store: Pick<CertificateStore, 'getCertificates' | 'revokeCertificate'>;
  readonly cas: Pick<CaRouter, 'issuers'>;
  readonly log: Pick<Logger, 'warn'>;
}

export type RevocationOrder = Pick<Revocation, 'reason' | 'invalidity_date' | 'revoked_at'>;

/** @throws EstuaryError 400 if the reason is not a revocation, or the invalidity date is in the future */
export function checkOrder({ reason, invalidity_date, revoked_at }: RevocationOrder): void {
  if (!REVOCATION_REASONS.some((known) => known === reason))
    throw badRequest('FIELD_INVALID', `reason must be one of ${REVOCATION_REASONS.join(', ')}, not ${reason}`);
  if (invalidity_date !== null && invalidity_date > revoked_at)
    throw badRequest('FIELD_INVALID', 'invalidity_date must not be in the future');
}

/** Whether a certificate is revoked for good. A hold can end, or become final. */
export const isFinal = ({ revoked_at, reason }: Pick<ListedCertificate, 'revoked_at' | 'reason'>): boolean =>
  revoked_at !== null && reason !== HOLD;

/**
 * Makes the hold of a held certificate final. Informs a remote CA first; if it is unreachable, nothing is revoked. A CA
 * that is no longer configured is not informed.
 * @param by who revokes, and from where
 * @param further events to commit before the revocation's own
 * @throws EstuaryError 409 `HOLD_UNSUPPORTED`, 500, 503: nothing changed
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
  if (isFinal(row) || (row.revoked_at !== null && reason === HOLD)) return 'already-revoked';
  const known = cas.issuers.find(({ label }) => label === ca);
  if (known === undefined) log.warn({ ca, serial }, 'revoked here only: the CA is no longer configured');
  else {
    if (reason === HOLD && known.driver.cannotHold === true)
      throw conflict('HOLD_UNSUPPORTED', `CA ${ca} cannot end a hold: revoke the certificate with a final reason`);
    const [recorded] = known.ownIsRecorded ? await store.getCertificates(serial, ca) : [];
    await known.driver.revoke?.({ serial, reason, ...(recorded && { certificate: recorded.der }) });
  }
  return store.revokeCertificate({ ca, serial, ...order }, [...further, certificateRevoked(by, row, order)]);
}

/**
 * Ends a hold. Remote CAs are not informed, because {@link revoke} rejects holds that they would have to end.
 * @throws EstuaryError 500, 503: nothing changed
 */
export const release = (
  { store }: { readonly store: Pick<CertificateStore, 'releaseCertificate'> },
  row: ListedCertificate,
  now: number,
  by: By,
  further: readonly AuditEvent[] = [],
): Promise<ReleaseResult> =>
  store.releaseCertificate({ ca: row.ca, serial: row.serial }, now, [...further, certificateReleased(by, row)]);

export const alreadyRevoked = (): EstuaryError => conflict('ALREADY_REVOKED', 'the certificate is already revoked');
