/** Operations on the row of a request at a remote CA. */
import { certificateIssued } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { IssuanceRequest } from '../ca/driver.ts';
import type { Logger } from '../log.ts';
import { parseCertificateRequest } from '../pki/cmc/tagged-request.ts';
import { parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { noteOnRequest } from '../request-context.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { IssuanceStore, Reservation } from '../store/issuance-store.ts';
import type { RequestRow, RequestStore } from '../store/request-store.ts';
import { StoreLost } from '../store/calls/errors.ts';
import { certificateRow } from './certificate-row.ts';
import type { Repeats } from './repeats.ts';
import type { ReservationReleaser } from './reservation-releaser.ts';
import type { RemoteRequestStore } from '../store/remote-request-store.ts';

export interface RemoteRequestsOptions {
  readonly store: CertificateStore & IssuanceStore & RemoteRequestStore & Pick<RequestStore, 'getRequest'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
  /** Milliseconds between polls of one request that reach the CA, however many clients poll. */
  readonly interval: number;
  /** Closes reservations that the store cannot close now. */
  readonly releaser: Pick<ReservationReleaser, 'release'>;
  readonly repeats: Pick<Repeats, 'repeatable'>;
}

/** The reservation under which one process works on it. */
export function reservationOf(
  row: RequestRow,
  { instance, now }: Pick<RemoteRequestsOptions, 'instance' | 'now'>,
): Reservation {
  return {
    request_id: row.id,
    instance,
    ca: row.ca,
    label: null,
    serial: null,
    requester: row.requester,
    operation: row.operation,
    subject: row.subject,
    spki_sha256: row.spki_sha256,
    otp_id: null,
    device_key: row.device_key,
    // Checked on submission. A certificate that the CA issued is recorded even if the device was disabled since.
    required_device: null,
    created_at: now(),
  };
}

/** The second phase for a certificate that the CA issued. */
export async function recordIssued(
  store: IssuanceStore,
  row: RequestRow,
  der: Buffer,
  { address, succeeded }: { readonly address?: string; readonly succeeded?: readonly string[] } = {},
): Promise<void> {
  const { ca, requester, method, id, device, device_key, required_device } = row;
  const of = { ca, requester, method, request_id: id, device, device_key, required_device };
  const certificate = certificateRow(der, of);
  const event = { ...rowEvent(row), ...(address === undefined ? {} : { address }), serial: certificate.serial };
  const events: readonly AuditEvent[] = [
    { ...event, type: 'ca.signature', outcome: 'success' },
    certificateIssued(event, certificate, row.operation),
  ];
  await store.recordCertificate(certificate, events, succeeded);
  noteOnRequest({ serial: certificate.serial });
}

/** A store error counts as a missing response. */
export async function orRelease(
  { releaser }: Pick<RemoteRequestsOptions, 'releaser'>,
  requestId: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    await releaser.release(requestId, []);
    throw error;
  }
}

export function rowEvent({ requester, ca, id }: RequestRow) {
  return { subject: requester, ca, request_id: id };
}

export function issuanceRequestOf({ id, csr, format, requester, operation }: RequestRow): IssuanceRequest {
  const content =
    format === 'crmf' ? parseCertificateRequest({ kind: 'crm', bodyPartID: 1, der: csr }) : parseCsrWithoutProof(csr);
  const { subject, subjectAltNames, publicKey } = content;
  const pkcs10 = format === 'pkcs10' ? csr : undefined;
  return {
    request_id: id,
    subject,
    subjectAltNames,
    spki: publicKey.spki,
    csr: undefined,
    pkcs10,
    requester,
    operation,
  };
}

/** For a call that commits a reservation: if the store was lost meanwhile, it may have committed. */
export async function releasingIfLost<T>(
  { releaser }: Pick<RemoteRequestsOptions, 'releaser'>,
  requestId: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StoreLost) await releaser.release(requestId, []);
    throw error;
  }
}
