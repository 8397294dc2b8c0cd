/** What is done with the row of a request at a CA elsewhere, whether it is being submitted or waits. */
import { certificateIssued } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { IssuanceRequest } from '../ca/driver.ts';
import type { Logger } from '../log.ts';
import { parseCertificateRequest } from '../pki/cmc/tagged-request.ts';
import { parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { noteOnRequest } from '../request-context.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { IssuanceStore, Reservation } from '../store/issuance-store.ts';
import type { RemoteRequestStore } from '../store/remote-request-store.ts';
import type { RequestRow, RequestStore } from '../store/request-store.ts';
import { StoreLost } from '../store/calls/errors.ts';
import { certificateRow } from './certificate-row.ts';
import type { Repeats } from './repeats.ts';
import type { ReservationReleaser } from './reservation-releaser.ts';

export interface RemoteRequestsOptions {
  readonly store: CertificateStore & IssuanceStore & RemoteRequestStore & Pick<RequestStore, 'getRequest'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
  /** Milliseconds between polls of one request that reach the CA, however many clients ask. */
  readonly interval: number;
  /** Closes the reservations that the store cannot close now. */
  readonly releaser: Pick<ReservationReleaser, 'release'>;
  readonly repeats: Pick<Repeats, 'repeatable'>;
}

/** The reservation under which one process is at work on it. */
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
    // Checked at the submission. What the CA has issued is recorded even if the device was disabled since.
    required_device: null,
    created_at: now(),
  };
}

/** The second phase of what the CA has issued. */
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

/** When the store cannot say what became of it, it is as if no answer had come. */
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

/** What the audit events of a row have in common. */
export function rowEvent({ requester, ca, id }: RequestRow) {
  return { subject: requester, ca, request_id: id };
}

/** What was asked for, from what was submitted. */
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

/** For the call that commits a reservation: where the store went away over it, it may have been committed. */
export async function orReleaseIfLost<T>(
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
