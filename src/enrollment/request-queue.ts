/**
 * Requests that an administrator has to approve (`approval = "manual"`). A request is queued once and recognised when
 * it is made again; once approved it is issued by the poll that comes next, through the same two phases as every other.
 * docs/approval.md tells why.
 */
import { createHash } from 'node:crypto';
import type { AuditEvent } from '../audit/event.ts';
import type { Identity } from '../auth/identity.ts';
import { EstuaryError, describe, failed, forbidden, unauthorized } from '../errors.ts';
import type { CsrContent } from '../pki/pkcs10/csr.ts';
import { comparableGeneralNames, formatGeneralName } from '../pki/x509/general-name.ts';
import { comparableName, formatName } from '../pki/x509/name.ts';
import type { CertificateRow, RequestFormat, RequestRow, Store } from '../store/store.ts';
import {
  clearedBy,
  eventBase,
  RequestTaken,
  subjectFor,
  useEvents,
  type EnrollmentOutcome,
  type RecognisedCsr,
  type RequestBase,
} from './request.ts';

export interface RequestQueueOptions {
  readonly store: Store;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** A request as the queue takes it, with what differs between one for the requester's own key and one for ours. */
export interface QueueableRequest {
  readonly request: RequestBase & { readonly csr: CsrContent };
  /** Of the CSR's DER. */
  readonly format: RequestFormat;
  readonly recognised: RecognisedCsr;
  /** Of the key to certify. */
  readonly keyType: string;
  /** Hex SHA-256 of the SubjectPublicKeyInfo to certify; null where we generate the key, when it is issued. */
  readonly spkiSha256: string | null;
  /** Refuses what could not be issued; @throws EstuaryError */
  check(): Promise<unknown>;
  /**
   * Issues what was queued, not what was sent now: that is what was approved.
   *
   * @throws EstuaryError; RequestTaken while another poll issues it
   */
  issue(row: RequestRow): Promise<EnrollmentOutcome>;
  /** Present where a remote CA may queue the request. */
  readonly remote?: RemoteHandling | undefined;
}

/** What is done about a request that a remote CA decides about. */
export interface RemoteHandling {
  /**
   * Submits a new request, which needs no administrator's approval.
   *
   * @returns its outcome, or the request that was found in its place
   * @throws EstuaryError
   */
  submit(row: RequestRow, supersedes: string | null): Promise<EnrollmentOutcome | { readonly known: RequestRow }>;
  /** Finds out what has become of one that waits. @throws EstuaryError */
  poll(row: RequestRow): Promise<EnrollmentOutcome>;
}

/** A request that was found, and its certificate when it has one. */
interface Known {
  readonly row: RequestRow;
  readonly certificate: CertificateRow | undefined;
}

export class RequestQueue {
  readonly #store: Store;
  readonly #now: () => number;

  constructor({ store, now }: RequestQueueOptions) {
    this.#store = store;
    this.#now = now;
  }

  async isQueued(label: string, operation: string, identity: Identity, csr: RecognisedCsr): Promise<boolean> {
    const known = await this.#known(recognition(label, operation, identity, csr));
    return known !== undefined && !isSuperseded(known, identity);
  }

  /**
   * Answers a request that was queued before, and queues any other.
   *
   * @throws EstuaryError as `Enrollment.enroll` and `Enrollment.enrollGenerated`
   */
  async enroll(queueable: QueueableRequest): Promise<EnrollmentOutcome> {
    const { request, recognised } = queueable;
    const { ca, operation, identity } = request;
    const key = recognition(ca.label, operation, identity, recognised);
    const known = await this.#known(key);
    if (known !== undefined && !isSuperseded(known, identity)) return this.#answer(queueable, known);
    const { remote } = queueable;
    if (remote !== undefined && ca.config.approval === 'auto') {
      const result = await remote.submit(rowOf(queueable, key, this.#now()), known?.row.id ?? null);
      return 'known' in result ? this.#answer(queueable, await this.#withCertificate(result.known)) : result;
    }
    await queueable.check();
    const events: readonly AuditEvent[] = [
      ...request.events,
      { ...eventBase(request), type: 'request.received', outcome: 'success', detail: operation },
      ...useEvents(request),
      { ...eventBase(request), type: 'request.queued', outcome: 'success', detail: operation },
    ];
    const row = rowOf(queueable, key, this.#now());
    const result = await this.#store.queueRequest(row, known?.row.id ?? null, events, clearedBy(request));
    if (result === 'otp-unusable')
      throw unauthorized('OTP_INVALID', 'invalid OTP token', { detail: 'no use left when it was to be queued' });
    // Two of the same request at once: the other one was queued.
    return result === 'queued'
      ? { status: 'pending', requestId: request.requestId }
      : this.#answer(queueable, await this.#withCertificate(result));
  }

  async #known(key: string): Promise<Known | undefined> {
    const row = await this.#store.findRequest(key);
    return row === undefined ? undefined : this.#withCertificate(row);
  }

  async #withCertificate(row: RequestRow): Promise<Known> {
    if (row.serial === null) return { row, certificate: undefined };
    const [certificate] = await this.#store.getCertificates(row.serial, row.ca);
    return { row, certificate };
  }

  async #answer(queueable: QueueableRequest, { row, certificate }: Known): Promise<EnrollmentOutcome> {
    if (row.status === 'approved') return this.#issue(queueable, row);
    if (row.status === 'pending' && row.decider === 'ca') return this.#poll(queueable, row);
    // The refusals are audited, with the events of the authentication, where every refusal is.
    if (row.status === 'rejected') throw forbidden('REQUEST_REJECTED', row.reason ?? 'The request was rejected.');
    if (row.status === 'failed') throw forbidden('REQUEST_CANCELED', row.reason ?? 'The request was canceled.');
    if (row.status === 'issued' && queueable.spkiSha256 === null) throw keySentOnce(row);
    await this.#store.audit(queueable.request.events);
    if (row.status === 'pending') return { status: 'pending', requestId: row.id };
    if (certificate === undefined)
      throw failed('CERTIFICATE_MISSING', 'The certificate of this request cannot be found.', {
        detail: `request ${row.id}: ${row.status}, certificate ${row.ca} ${row.serial}`,
      });
    return { status: 'issued', certificate: certificate.der };
  }

  async #poll({ request, remote }: QueueableRequest, row: RequestRow): Promise<EnrollmentOutcome> {
    const outcome = (await remote?.poll(row)) ?? { status: 'pending', requestId: row.id };
    await this.#store.audit(request.events);
    return outcome;
  }

  async #issue(queueable: QueueableRequest, row: RequestRow): Promise<EnrollmentOutcome> {
    try {
      return await queueable.issue(row);
    } catch (error) {
      if (error instanceof RequestTaken) return this.#afterOther(queueable, row.id);
      if (error instanceof EstuaryError && error.status < 500) await this.#fail(queueable.request, row.id, error);
      throw error;
    }
  }

  /** Another poll issues it at this moment, or has. */
  async #afterOther(queueable: QueueableRequest, id: string): Promise<EnrollmentOutcome> {
    const row = await this.#store.getRequest(id);
    if (row?.status === 'issued') return this.#answer(queueable, await this.#withCertificate(row));
    await this.#store.audit(queueable.request.events);
    return { status: 'pending', requestId: id };
  }

  /** The CA refuses for good what an administrator approved: its policy has changed since. */
  async #fail(request: RequestBase, requestId: string, error: EstuaryError): Promise<void> {
    await this.#store.failRequest(requestId, error.message, this.#now(), [
      {
        ...eventBase({ ...request, requestId }),
        type: 'certificate.failed',
        outcome: 'failure',
        detail: describe(error),
      },
    ]);
  }
}

/** The answer that held the generated key was the only one: whoever lost it needs another certificate. */
function keySentOnce({ serial, ca }: RequestRow): EstuaryError {
  return forbidden(
    'KEY_SENT_ONCE',
    `The private key was sent with certificate ${serial} and is not kept; have that certificate revoked, then ask again.`,
    { detail: `certificate ${ca} ${serial}` },
  );
}

/**
 * A certificate that was revoked, or that the requester presents to have it renewed, answers no further request: the
 * next one is new.
 */
function isSuperseded({ certificate }: Known, identity: Identity): boolean {
  if (certificate === undefined) return false;
  if (certificate.revoked_at !== null) return true;
  const presented = 'certificate' in identity ? identity.certificate : undefined;
  return presented?.fingerprint === certificate.fingerprint_sha256;
}

/** Not over the CSR's bytes: with channel binding they change on every connection. */
function recognition(label: string, operation: string, identity: Identity, csr: RecognisedCsr): string {
  const parts = [
    identity.requester,
    label,
    operation,
    csr.key,
    comparableName(subjectFor(identity, csr)),
    comparableGeneralNames(csr.subjectAltNames),
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

function rowOf({ request, format, keyType, spkiSha256 }: QueueableRequest, key: string, now: number): RequestRow {
  const { ca, csr, identity, operation, requestId } = request;
  return {
    id: requestId,
    ca: ca.label,
    operation,
    subject: formatName(subjectFor(identity, csr)),
    sans: csr.subjectAltNames.map(formatGeneralName),
    key_type: keyType,
    requester: identity.display,
    method: identity.method,
    status: 'pending',
    created_at: now,
    decided_at: null,
    reason: null,
    serial: null,
    csr: csr.der,
    format,
    spki_sha256: spkiSha256,
    otp_id: identity.method === 'otp' ? identity.otp_id : null,
    recognition: key,
    changed_at: now,
    decider: 'admin',
    reference: null,
    missing_since: null,
  };
}
