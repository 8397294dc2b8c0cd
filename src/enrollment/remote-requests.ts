/**
 * Requests at a CA elsewhere. The request is in the store before it is submitted, and its reservation is held for as
 * long as its submission is under way: whatever happens in between, a request is submitted once, and what became of it is found out
 * before it can be made again. docs/guides/dogtag.md tells why.
 */
import { certificateFailed, requestEnded } from '../audit/applied-events.ts';
import type { Found, RemoteQueue } from '../ca/driver.ts';
import type { Ca } from '../ca/router.ts';
import { describe, EstuaryError, forbidden, isRefusal, unavailable } from '../errors.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { Allowed } from './allowed.ts';
import { RequestTaken, type EnrollmentOutcome } from './request.ts';
import {
  issuanceRequestOf,
  mayBeReserved,
  orRelease,
  recordIssued,
  reservationOf,
  rowEvent,
  Submitted,
  type RemoteRequestsOptions,
} from './submitted.ts';
import { stateOf } from '../store/request-state.ts';
import type { RequestEnd } from '../store/remote-request-store.ts';

/** A CA with its own queue. */
export interface RemoteCa {
  readonly ca: Ca;
  readonly queue: RemoteQueue;
}

/** Unanswered submissions per sweep. */
const SWEEP_LIMIT = 50;

export class RemoteRequests {
  readonly #options: RemoteRequestsOptions;
  readonly #store: RemoteRequestsOptions['store'];
  readonly #later = new Map<string, NodeJS.Timeout>();

  constructor(options: RemoteRequestsOptions) {
    this.#options = options;
    this.#store = options.store;
  }

  /**
   * Submits a request that passed every check.
   * @returns the outcome, or the request that was found instead
   * @throws as {@link Submitted.of} and {@link Submitted.issue}
   */
  async submit(allowed: Allowed, row: RequestRow, supersedes: string | null): Promise<EnrollmentOutcome | RequestRow> {
    const submitted = await Submitted.of(allowed, row, supersedes, this.#options);
    if (!(submitted instanceof Submitted)) return submitted;
    const outcome = await submitted.issue();
    const { ca } = allowed.keyed.request;
    const queue = ca.driver.remoteQueue;
    if (queue?.continuesAtOnce !== true) return outcome;
    const waiting = await this.#store.getRequest(row.id);
    return waiting?.reference == null ? outcome : this.poll({ ca, queue }, waiting);
  }

  /**
   * The state of a request at its CA; calls the CA at most once per interval.
   * @throws EstuaryError 403 rejected or canceled; 500 the CA issued something else; 503 the CA has lost it
   */
  async poll(remote: RemoteCa, row: RequestRow, interval = this.#options.interval): Promise<EnrollmentOutcome> {
    const waits: EnrollmentOutcome = { status: 'pending', requestId: row.id };
    const now = this.#options.now();
    if (!(await this.#store.takePoll(row.id, now, now - interval))) return waits;
    try {
      const reference = row.reference ?? (await this.#find(remote, row));
      if (typeof reference !== 'string') return reference ?? waits;
      return (await this.#ask(remote, row, reference)) ?? waits;
    } catch (error) {
      if (error instanceof RequestTaken) return waits;
      const isShown = remote.queue.showsFailures === true || isRefusal(error);
      if (error instanceof EstuaryError && (isShown || ENDINGS.has(error.code))) throw error;
      // An unreachable CA does not change the request's state.
      this.#options.log.warn({ ca: row.ca, request_id: row.id, detail: describe(error) }, 'cannot poll the request');
      return waits;
    }
  }

  /** Looks up unanswered submissions, and advances requests, even if their clients do not return. Never rejects. */
  async lookForUnanswered(remotes: readonly RemoteCa[]): Promise<void> {
    const { now, interval, log } = this.#options;
    try {
      const advancing = remotes.flatMap(({ ca, queue }) => (queue.continuesAtOnce === true ? [ca.label] : []));
      for (const row of await this.#store.listToPoll(now() - interval, SWEEP_LIMIT, advancing)) {
        const remote = remotes.find(({ ca }) => ca.label === row.ca);
        if (remote !== undefined) await this.#pollUnasked(remote, row, interval);
      }
    } catch (error) {
      log.warn({ detail: describe(error) }, 'cannot look up unanswered submissions');
    }
  }

  async #pollUnasked(remote: RemoteCa, row: RequestRow, interval: number): Promise<void> {
    await this.poll(remote, row, interval).catch((error: unknown) =>
      this.#options.log.warn({ ca: row.ca, request_id: row.id, detail: describe(error) }, 'a request at a CA failed'),
    );
  }

  /** Polls again when the CA asked for it, whether or not the client returns. The sweep does it after a restart. */
  #pollLater(remote: RemoteCa, { id }: RequestRow, seconds: number): void {
    const poll = async (): Promise<void> => {
      this.#later.delete(id);
      const row = await this.#store.getRequest(id).catch(() => undefined);
      if (row !== undefined && stateOf(row) === 'pending at the CA') await this.#pollUnasked(remote, row, 0);
    };
    clearTimeout(this.#later.get(id));
    this.#later.set(id, setTimeout(() => void poll(), seconds * 1000).unref());
  }

  async #ask(remote: RemoteCa, row: RequestRow, reference: string): Promise<EnrollmentOutcome | undefined> {
    const { queue } = remote;
    const result = await this.#endedBy(row, () => queue.poll(reference, issuanceRequestOf(row)));
    switch (result.status) {
      case 'issued':
        return this.#claimAndRecord(row, result.certificate);
      case 'pending': {
        const { reason = row.reason, retryAfter } = result;
        if (row.missing_since !== null || row.reason !== reason)
          await this.#store.noteWaiting(row.id, { reason, missing_since: null });
        if (queue.continuesAtOnce === true && retryAfter !== undefined) this.#pollLater(remote, row, retryAfter);
        return undefined;
      }
      case 'rejected':
        await this.#end(row, {
          ...DECIDED,
          status: 'rejected',
          reason: result.reason,
          decided_at: this.#options.now(),
        });
        throw forbidden('REQUEST_REJECTED', result.reason);
      case 'canceled': {
        const reason = 'The request was canceled at the CA.';
        await this.#end(row, { ...DECIDED, status: 'failed', reason, decided_at: this.#options.now(), final: true });
        throw forbidden('REQUEST_CANCELED', reason);
      }
      case 'unknown':
        return this.#missing(queue, row);
    }
  }

  /** The CA works but does not know the request: replicas lag, or an accepted request was lost. */
  async #missing(queue: RemoteQueue, row: RequestRow): Promise<undefined> {
    const now = this.#options.now();
    const since = row.missing_since ?? now;
    if (row.missing_since === null) await this.#store.noteWaiting(row.id, { reason: row.reason, missing_since: now });
    if (now - since < queue.lostAfter) return;
    await this.#end(row, { ...UNDECIDED, reason: 'The CA accepted the request and no longer knows it.' });
    throw unavailable('REQUEST_LOST', 'The CA has lost this request. Send it again.');
  }

  /** @returns its reference or outcome at the CA; undefined: not found yet */
  async #find({ ca, queue }: RemoteCa, row: RequestRow): Promise<string | EnrollmentOutcome | undefined> {
    const request = issuanceRequestOf(row);
    const from = row.changed_at;
    const settled = from + queue.settled;
    const searchedAt = this.#options.now();
    const found = await this.#endedBy(row, () => queue.find({ ...request, from, until: settled }));
    const certificate = await this.#unrecorded(row, found);
    if (certificate !== undefined) {
      await this.#endedBy(row, () => queue.verify(certificate, request));
      return this.#claimAndRecord(row, certificate);
    }
    const waiting = found.find((intent) => 'reference' in intent);
    if (waiting !== undefined) {
      await this.#store.awaitCa(row.id, waiting.reference, [
        {
          ...rowEvent(row),
          type: 'request.queued',
          outcome: 'success',
          detail: `found at the CA as ${waiting.reference}`,
        },
      ]);
      return waiting.reference;
    }
    if (searchedAt < settled) return undefined;
    const [reason, answer] =
      queue.canFind === false
        ? [
            'The submission was not answered. The CA may have issued a certificate.',
            `The CA "${ca.label}" did not answer, and may have issued a certificate. Send the request again.`,
          ]
        : [
            'The submission was not answered, and the CA does not know the request.',
            `The CA "${ca.label}" did not accept the request. Send it again.`,
          ];
    await this.#end(row, { ...UNDECIDED, reason });
    throw unavailable('SUBMISSION_LOST', answer);
  }

  /** Another request with the same key may have been issued meanwhile. */
  async #unrecorded(row: RequestRow, found: readonly Found[]): Promise<Buffer | undefined> {
    for (const outcome of found) {
      if (!('certificate' in outcome)) continue;
      const { serialNumber } = parseCertificate(outcome.certificate);
      if ((await this.#store.getCertificates(serialNumber, row.ca)).length === 0) return outcome.certificate;
    }
    return undefined;
  }

  /** The second phase of a certificate issued while it waited. */
  async #claimAndRecord(row: RequestRow, certificate: Buffer): Promise<EnrollmentOutcome> {
    const take = () => this.#store.claimRequest(reservationOf(row, this.#options), []);
    const claim = await orRelease(this.#options, row.id, take, mayBeReserved);
    if (claim !== 'reserved') throw new RequestTaken();
    await orRelease(this.#options, row.id, () => recordIssued(this.#store, row, certificate));
    return { status: 'issued', certificate };
  }

  /** Ends the request if the CA refuses it or issued something else. */
  async #endedBy<T>(row: RequestRow, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const isEnd =
        error instanceof EstuaryError &&
        (isRefusal(error) || error.code === 'CA_ISSUED_OTHER' || error.code === 'SUBMISSION_LOST');
      if (isEnd) await this.#end(row, { ...UNDECIDED, reason: error.message }, describe(error));
      throw error;
    }
  }

  async #end(row: RequestRow, ending: RequestEnd, detail = ending.reason): Promise<void> {
    const event =
      ending.status === 'rejected'
        ? requestEnded('request.rejected', rowEvent(row), ending.reason, `at the CA: ${detail}`)
        : certificateFailed(rowEvent(row), detail);
    await this.#store.endRequest(row.id, ending, this.#options.now(), [event]);
  }
}

/** The CA decided: the OTP use stays taken, as after an administrator's rejection. */
const DECIDED = { final: false, otp_use_returns: false } as const;
/** No decision: the request may be repeated with the same OTP. */
const UNDECIDED = { status: 'failed', decided_at: null, final: false, otp_use_returns: true } as const;

/** Failures that end a request; others are temporary. */
const ENDINGS: ReadonlySet<string> = new Set(['CA_ISSUED_OTHER', 'REQUEST_LOST', 'SUBMISSION_LOST']);
