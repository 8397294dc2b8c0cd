/** Stage of a request at a remote CA: it is stored with its reservation, and may be submitted once. Operations on its row. */
import { certificateFailed, certificateIssued } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { IssuanceRequest } from '../ca/driver.ts';
import { describe, EstuaryError, forbidden } from '../errors.ts';
import type { Logger } from '../log.ts';
import { parseCertificateRequest } from '../pki/cmc/tagged-request.ts';
import { parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { noteOnRequest } from '../request-context.ts';
import { StoreLost } from '../store/calls/errors.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { IssuanceStore, Reservation } from '../store/issuance-store.ts';
import type { RemoteRequestStore } from '../store/remote-request-store.ts';
import { stateOf, TRANSITIONS } from '../store/request-state.ts';
import type { RequestRow, RequestStore } from '../store/request-store.ts';
import type { Allowed } from './allowed.ts';
import { certificateRow } from './certificate-row.ts';
import { namesBeyond, parseCertifiedNames } from './names.ts';
import { RequestRepeated, type Repeats } from './repeats.ts';
import {
  eventBase,
  queuedEvent,
  receivedEvents,
  refuseDryRun,
  refuseUnusable,
  rescuedRequest,
  type EnrollmentOutcome,
  type RequestBase,
} from './request.ts';
import type { ReservationReleaser } from './reservation-releaser.ts';

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

/** Whether its submission takes an OTP use; an approved request took it when it was queued. */
const takesUse = (row: RequestRow): boolean =>
  TRANSITIONS[stateOf(row) === 'approved' ? 'handOver' : 'submit'].use === 'is taken';

export class Submitted {
  readonly #allowed: Allowed;
  readonly #row: RequestRow;
  readonly #options: RemoteRequestsOptions;

  private constructor(allowed: Allowed, row: RequestRow, options: RemoteRequestsOptions) {
    this.#allowed = allowed;
    this.#row = row;
    this.#options = options;
  }

  /**
   * From a request that passed every check, new or approved.
   * @param row to be queued, or the approved row
   * @returns itself, or the request that was found instead
   * @throws EstuaryError 401 if another request took the OTP's last use; 403; 500; 503; RequestRepeated if the same
   * request has the use
   */
  static async of(
    allowed: Allowed,
    row: RequestRow,
    supersedes: string | null,
    options: RemoteRequestsOptions,
  ): Promise<Submitted | RequestRow> {
    refuseDryRun(allowed.keyed.request);
    const events = receivedEvents(allowed.keyed.request, takesUse(row));
    const { retry_window } = options.repeats.repeatable(row.recognition);
    const rescued = rescuedRequest(allowed.keyed.request, row.recognition);
    const reservation = { ...reservationOf(row, options), rescued };
    const submit = () => options.store.submitRequest(row, supersedes, reservation, events, retry_window);
    const result = await orRelease(options, row.id, submit, mayBeReserved);
    if (result === 'repeated') throw new RequestRepeated();
    if (typeof result === 'object') return result;
    refuseUnusable(result, allowed.keyed.request, 'at the submission');
    result satisfies 'submitted';
    return new Submitted(allowed, row, options);
  }

  /**
   * Submits it to the CA once.
   * @throws EstuaryError 403 if the CA rejects it; 500; 503. The OTP use is then not lost
   */
  async issue(): Promise<EnrollmentOutcome> {
    const row = this.#row;
    const { keyed, prepared } = this.#allowed;
    const { request } = keyed;
    let result;
    try {
      result = await prepared.issue(true);
    } catch (error) {
      if (!(error instanceof EstuaryError)) return this.#unanswered(request, error);
      await this.#withdraw(request, describe(error));
      throw error;
    }
    if (result.status === 'pending') {
      return await this.#awaitCa(request, result.reference, `at the CA as ${result.reference}`);
    }
    if (result.status === 'issued') {
      const { address } = request;
      await orRelease(this.#options, request.requestId, () =>
        recordIssued(this.#options.store, row, result.certificate, address),
      );
      return result;
    }
    const reason = result.status === 'rejected' ? result.reason : 'The CA canceled the request.';
    await this.#withdraw(request, reason);
    throw forbidden('CA_REJECTED', reason);
  }

  /** It may have arrived: the client polls, and the CA is searched for it. */
  async #unanswered(request: RequestBase, error: unknown): Promise<EnrollmentOutcome> {
    const detail = `not answered by the CA, which may have it: ${describe(error)}`;
    this.#options.log.warn(
      { ca: request.ca.label, request_id: request.requestId, detail },
      'the CA did not respond to the submission',
    );
    return this.#awaitCa(request, null, detail);
  }

  async #awaitCa(request: RequestBase, reference: string | null, detail: string): Promise<EnrollmentOutcome> {
    const { store } = this.#options;
    const { id } = this.#row;
    await orRelease(this.#options, id, () => store.awaitCa(id, reference, [queuedEvent(request, detail)]));
    return { status: 'pending', requestId: id };
  }

  async #withdraw(request: RequestBase, reason: string): Promise<void> {
    await orRelease(this.#options, request.requestId, () =>
      this.#options.store.withdrawRequest(request.requestId, [certificateFailed(eventBase(request), reason)]),
    );
  }
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
  address?: string,
): Promise<void> {
  const { ca, requester, method, id, device, device_key, required_device } = row;
  const of = { ca, requester, method, request_id: id, device, device_key, required_device };
  const certificate = certificateRow(der, of);
  const event = { ...rowEvent(row), ...(address === undefined ? {} : { address }), serial: certificate.serial };
  const names = namesBeyond(der, parseCertifiedNames(row.names));
  const events: readonly AuditEvent[] = [
    { ...event, type: 'ca.signature', outcome: 'success' },
    certificateIssued(event, certificate, row.operation, names),
  ];
  await store.recordCertificate(certificate, events, names);
  noteOnRequest({ serial: certificate.serial });
}

/**
 * Closes the reservation after an error: a store error counts as a missing response.
 * @param isOpen whether an error leaves a reservation; default: every error
 */
export async function orRelease<T>(
  { releaser }: Pick<RemoteRequestsOptions, 'releaser'>,
  requestId: string,
  work: () => Promise<T>,
  isOpen: (error: unknown) => boolean = () => true,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isOpen(error)) await releaser.release(requestId, []);
    throw error;
  }
}

/** For a call that commits a reservation: if the store was lost meanwhile, it may have committed. */
export const mayBeReserved = (error: unknown): boolean => error instanceof StoreLost;

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
