/**
 * Requests that an administrator has to approve (`approval = "manual"`), or that wait at a remote CA. A request is queued once and
 * recognized when it is made again; once approved it is issued by the poll that comes next, through the same stages as every other.
 * docs/guides/approval.md tells why.
 */
import { certificateFailed } from '../audit/applied-events.ts';
import { auditedRequester, type Identity, tokenOf } from '../auth/identity.ts';
import { describe, type EstuaryError } from '../errors.ts';
import { withoutSecrets } from '../pki/pkcs10/challenges.ts';
import { formatGeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import { spkiHash } from '../pki/x509/public-key.ts';
import { isRecordOf, type CertificateRow, type CertificateStore } from '../store/certificate-store.ts';
import type { RequestRow, RequestStore } from '../store/request-store.ts';
import type { Authorized } from './authorized.ts';
import type { Allowed } from './allowed.ts';
import { formatCertifiedNames } from './names.ts';
import { recognitionOf, type Recognized } from './recognition.ts';
import {
  deviceOf,
  eventBase,
  queuedEvent,
  receivedEvents,
  refuseDryRun,
  refuseUnusable,
  rescuedRequest,
  type EnrollmentOutcome,
  type RequestBase,
} from './request.ts';

export interface RequestQueueOptions {
  readonly store: CertificateStore & RequestStore;
  readonly now: () => number;
}

/** A queued request, and its certificate, if any. */
export interface Known {
  readonly row: RequestRow;
  readonly certificate: CertificateRow | undefined;
}

/** The key of a lookup, and what the request replaces in the queue. */
export interface Place {
  readonly recognition: string;
  /** The request whose certificate is no longer an answer. */
  readonly supersedes: string | null;
}

/** The request is queued, with its OTP use and its audit records. */
export class Queued {
  readonly #requestId: string;

  private constructor(requestId: string) {
    this.#requestId = requestId;
  }

  get outcome(): EnrollmentOutcome {
    return { status: 'pending', requestId: this.#requestId };
  }

  /**
   * @throws EstuaryError 401 if another request took the OTP's last use; 500; 503. @returns the request that was found
   * instead
   */
  static async of(
    { keyed: { request } }: Allowed,
    row: RequestRow,
    place: Place,
    store: CertificateStore & RequestStore,
  ): Promise<Queued | RequestRow> {
    refuseDryRun(request);
    const events = [...receivedEvents(request, true), queuedEvent(request, request.operation)];
    const rescued = rescuedRequest(request, row.recognition);
    const result = await store.queueRequest(row, place.supersedes, events, rescued);
    if (typeof result === 'object') return result;
    refuseUnusable(result, request, 'when the request was to be queued');
    result satisfies 'queued';
    return new Queued(row.id);
  }
}

export class RequestQueue {
  readonly #store: CertificateStore & RequestStore;
  readonly #now: () => number;

  constructor({ store, now }: RequestQueueOptions) {
    this.#store = store;
    this.#now = now;
  }

  /** Whether this request is queued, so that a used-up token may poll it. */
  async isQueued(request: RequestBase, sent: Recognized): Promise<boolean> {
    return 'row' in (await this.#find(request, recognitionOf(request, sent)));
  }

  find({ request, recognition }: Authorized): Promise<Known | Place> {
    return this.#find(request, recognition);
  }

  async #find(request: RequestBase, recognition: string): Promise<Known | Place> {
    const row = await this.#store.findRequest(recognition);
    if (row === undefined) return { recognition, supersedes: null };
    const known = await this.known(row);
    return (await isSuperseded(known, request.identity, this.#now())) ? { recognition, supersedes: row.id } : known;
  }

  async known(row: RequestRow): Promise<Known> {
    if (row.serial === null) return { row, certificate: undefined };
    return { row, certificate: await this.#store.findCertificateByRequest(row.id) };
  }

  /** The row of a request to be queued here, or submitted elsewhere. @param revocationChallenge its hash */
  rowOf({ keyed, override }: Allowed, { recognition }: Place, revocationChallenge: string | undefined): RequestRow {
    const { request, csr, names, key: wanted } = keyed.authorized;
    const { ca, identity, operation, requestId } = request;
    const { publicKey, format } = keyed.key;
    const { requester_issuer = null, requester_sans = [] } = auditedRequester(identity);
    const now = this.#now();
    return {
      id: requestId,
      ca: ca.label,
      operation,
      subject: formatName(names.subject),
      sans: names.subjectAltNames.map(formatGeneralName),
      key_type: publicKey.keyType,
      requester: identity.display,
      method: identity.method,
      requester_id: identity.requester,
      requester_issuer,
      requester_sans,
      names: formatCertifiedNames(names),
      status: 'pending',
      created_at: now,
      decided_at: null,
      decided_by: [],
      approvals: ca.config.approvals,
      reason: null,
      serial: null,
      csr: withoutSecrets(csr, revocationChallenge),
      format,
      spki_sha256: wanted.kind === 'own' ? spkiHash(publicKey) : null,
      otp_id: tokenOf(identity)?.otp_id ?? null,
      recognition,
      changed_at: now,
      decider: 'admin',
      reference: null,
      missing_since: null,
      ...deviceOf(request),
      override,
    };
  }

  /** The CA permanently rejects what an administrator approved: its policy has changed since. */
  async fail(request: RequestBase, requestId: string, error: EstuaryError): Promise<void> {
    await this.#store.failRequest(requestId, error.message, this.#now(), [
      certificateFailed(eventBase({ ...request, requestId }), describe(error)),
    ]);
  }
}

/**
 * A certificate that is revoked, expired, or presented for renewal is no answer to further requests; the next one is
 * new.
 */
async function isSuperseded({ certificate: row }: Known, identity: Identity, now: number): Promise<boolean> {
  if (row === undefined) return false;
  if (row.revoked_at !== null || row.not_after < now) return true;
  if (!('certificate' in identity) || identity.certificate === undefined) return false;
  const { certificate, issuer } = identity;
  return certificate.serialNumber === row.serial && isRecordOf(row, { certificate, issuer });
}
