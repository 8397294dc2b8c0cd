/** Stage of a request at a remote CA: it is stored with its reservation, and may be submitted once. */
import { certificateFailed } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import { describe, EstuaryError, forbidden } from '../errors.ts';
import { stateOf, TRANSITIONS } from '../store/request-state.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { Allowed } from './allowed.ts';
import { orRelease, releasingIfLost, recordIssued, reservationOf, type RemoteRequestsOptions } from './remote-row.ts';
import { RequestRepeated } from './repeats.ts';
import {
  clearedBy,
  eventBase,
  receivedEvents,
  refuseDryRun,
  refuseUnusable,
  type EnrollmentOutcome,
  type RequestBase,
} from './request.ts';

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
    const reservation = reservationOf(row, options);
    const result = await releasingIfLost(options, row.id, () =>
      options.store.submitRequest(row, supersedes, reservation, events, retry_window),
    );
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
    const succeeded = takesUse(row) ? clearedBy(request) : [];
    let result;
    try {
      result = await prepared.issue(true);
    } catch (error) {
      if (!(error instanceof EstuaryError)) return this.#unanswered(request, error);
      await this.#withdraw(request, describe(error));
      throw error;
    }
    if (result.status === 'pending') {
      const detail = `at the CA as ${result.reference}`;
      const events: readonly AuditEvent[] = [
        { ...eventBase(request), type: 'request.queued', outcome: 'success', detail },
      ];
      await orRelease(this.#options, request.requestId, () =>
        this.#options.store.awaitCa(row.id, result.reference, events, succeeded),
      );
      return { status: 'pending', requestId: row.id };
    }
    if (result.status === 'issued') {
      const { address } = request;
      await orRelease(this.#options, request.requestId, () =>
        recordIssued(this.#options.store, row, result.certificate, { address, succeeded }),
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
    await orRelease(this.#options, request.requestId, () =>
      this.#options.store.awaitCa(request.requestId, null, [
        { ...eventBase(request), type: 'request.queued', outcome: 'success', detail },
      ]),
    );
    return { status: 'pending', requestId: request.requestId };
  }

  async #withdraw(request: RequestBase, reason: string): Promise<void> {
    await orRelease(this.#options, request.requestId, () =>
      this.#options.store.withdrawRequest(request.requestId, [certificateFailed(eventBase(request), reason)]),
    );
  }
}
