/**
 * Requests that an administrator has to approve (`approval = "manual"`). A request is queued once and recognised when
 * it is made again; once approved it is issued by the poll that comes next, through the same two phases as every other.
 * docs/approval.md tells why.
 */
import { createHash } from 'node:crypto';
import type { Identity } from '../auth/identity.ts';
import { EstuaryError, describe, failed, forbidden, unauthorized } from '../errors.ts';
import { parseCsr, verifyCsr } from '../pki/csr.ts';
import { comparableGeneralNames, formatGeneralName } from '../pki/general-name.ts';
import { comparableName, formatName } from '../pki/name.ts';
import type { CertificateRow, RequestRow, Store } from '../store/store.ts';
import {
  eventBase,
  RequestTaken,
  spkiHash,
  subjectFor,
  type EnrollmentOutcome,
  type EnrollmentRequest,
  type QueuedCsr,
} from './request.ts';

export interface RequestQueueOptions {
  readonly store: Store;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Refuses what could not be issued; @throws EstuaryError */
  readonly check: (request: EnrollmentRequest) => Promise<unknown>;
  /** Issues an approved request; the DER certificate. @throws EstuaryError; RequestTaken while another poll issues it */
  readonly issue: (request: EnrollmentRequest) => Promise<Buffer>;
}

/** A request that was found, and its certificate when it has one. */
interface Known {
  readonly row: RequestRow;
  readonly certificate: CertificateRow | undefined;
}

export class RequestQueue {
  readonly #store: Store;
  readonly #options: RequestQueueOptions;

  constructor(options: RequestQueueOptions) {
    this.#store = options.store;
    this.#options = options;
  }

  async isQueued(label: string, operation: string, identity: Identity, csr: QueuedCsr): Promise<boolean> {
    const known = await this.#known(recognition(label, operation, identity, csr));
    return known !== undefined && !isSuperseded(known, identity);
  }

  /**
   * Answers a request that was queued before, and queues any other.
   *
   * @throws EstuaryError as `Enrollment.enroll`
   */
  async enroll(request: EnrollmentRequest): Promise<EnrollmentOutcome> {
    const { ca, operation, identity, csr } = request;
    const key = recognition(ca.label, operation, identity, csr);
    const known = await this.#known(key);
    if (known !== undefined && !isSuperseded(known, identity)) return this.#answer(request, known);
    await this.#options.check(request);
    const result = await this.#store.queueRequest(rowOf(request, key, this.#options.now()), known?.row.id ?? null, [
      ...request.events,
      { ...eventBase(request), type: 'request.received', outcome: 'success', detail: operation },
      { ...eventBase(request), type: 'request.queued', outcome: 'success', detail: operation },
    ]);
    if (result === 'otp-unusable')
      throw unauthorized('OTP_INVALID', 'invalid OTP token', { detail: 'no use left when it was to be queued' });
    // Two of the same request at once: the other one was queued.
    return result === 'queued' ? { status: 'pending' } : this.#answer(request, await this.#withCertificate(result));
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

  async #answer(request: EnrollmentRequest, { row, certificate }: Known): Promise<EnrollmentOutcome> {
    if (row.status === 'approved') return this.#issue(request, row);
    // The refusal is audited, with the events of the authentication, where every refusal is.
    if (row.status === 'rejected') throw forbidden('REQUEST_REJECTED', row.reason ?? 'The request was rejected.');
    await this.#store.audit(request.events);
    if (row.status === 'pending') return { status: 'pending' };
    if (certificate === undefined)
      throw failed('CERTIFICATE_MISSING', 'The certificate of this request cannot be found.', {
        detail: `request ${row.id}: ${row.status}, certificate ${row.ca} ${row.serial}`,
      });
    return { status: 'issued', certificate: certificate.der };
  }

  /** Issues what was queued, not what was sent now: that is what was approved. */
  async #issue(request: EnrollmentRequest, row: RequestRow): Promise<EnrollmentOutcome> {
    const csr = await verifyCsr(parseCsr(row.csr));
    const approved = { ...request, csr, requestId: row.id };
    try {
      return { status: 'issued', certificate: await this.#options.issue(approved) };
    } catch (error) {
      if (error instanceof RequestTaken) return this.#afterOther(request, row.id);
      if (error instanceof EstuaryError && error.status < 500) await this.#fail(approved, error);
      throw error;
    }
  }

  /** Another poll issues it at this moment, or has. */
  async #afterOther(request: EnrollmentRequest, id: string): Promise<EnrollmentOutcome> {
    const row = await this.#store.getRequest(id);
    if (row?.status === 'issued') return this.#answer(request, await this.#withCertificate(row));
    await this.#store.audit(request.events);
    return { status: 'pending' };
  }

  /** The CA refuses for good what an administrator approved: its policy has changed since. */
  async #fail(request: EnrollmentRequest, error: EstuaryError): Promise<void> {
    await this.#store.failRequest(request.requestId, error.message, this.#options.now(), [
      { ...eventBase(request), type: 'certificate.failed', outcome: 'failure', detail: describe(error) },
    ]);
  }
}

/**
 * A certificate that was revoked, or that the requester presents to have it renewed, answers no further request: the
 * next one is new.
 */
function isSuperseded({ certificate }: Known, identity: Identity): boolean {
  if (certificate === undefined) return false;
  if (certificate.revoked_at !== null) return true;
  return identity.method === 'mtls' && identity.certificate.fingerprint === certificate.fingerprint_sha256;
}

/** Not over the CSR's bytes: with channel binding they change on every connection. */
function recognition(label: string, operation: string, identity: Identity, csr: QueuedCsr): string {
  const parts = [
    identity.requester,
    label,
    operation,
    spkiHash(csr),
    comparableName(subjectFor(identity, csr)),
    comparableGeneralNames(csr.subjectAltNames),
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

function rowOf({ ca, csr, identity, operation, requestId }: EnrollmentRequest, key: string, now: number): RequestRow {
  return {
    id: requestId,
    ca: ca.label,
    operation,
    subject: formatName(subjectFor(identity, csr)),
    sans: csr.subjectAltNames.map(formatGeneralName),
    key_type: csr.publicKey.keyType,
    requester: identity.display,
    method: identity.method,
    status: 'pending',
    created_at: now,
    decided_at: null,
    reason: null,
    serial: null,
    csr: csr.der,
    format: 'pkcs10',
    spki_sha256: spkiHash(csr),
    otp_id: identity.method === 'otp' ? identity.otp_id : null,
    recognition: key,
    changed_at: now,
  };
}
