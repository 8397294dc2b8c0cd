/**
 * The heart: turns an authenticated, authorised request into a certificate. Knows no HTTP.
 *
 * Issuance is two-phase. The intent (CA, serial, requester, one OTP use) is committed before the CA signs, the
 * certificate is committed before it is answered; a crash between the two leaves a reservation that start-up
 * reconciles. docs/issuance.md tells why.
 */
import type { AuditEvent } from '../audit/event.ts';
import { checkPopLinking, type PopLinkingPolicy } from '../auth/channel-binding.ts';
import type { Identity } from '../auth/identity.ts';
import { checkPolicy } from '../ca/profile.ts';
import type { PreparedIssuance } from '../ca/driver.ts';
import type { Ca } from '../ca/router.ts';
import { describe, EstuaryError, failed, forbidden, unauthorized } from '../errors.ts';
import type { Logger } from '../log.ts';
import { changeSubject, parseCsr, parseCsrWithoutProof, verifyCsr, type CsrContent } from '../pki/pkcs10/csr.ts';
import { formatName } from '../pki/x509/name.ts';
import type { RequestRow, Reservation, Store } from '../store/store.ts';
import { refuseSubjectChange } from './authorise.ts';
import { certificateRow } from './certificate-row.ts';
import { chooseKeyType, keyTypeNotGenerated, type KeyGenerator } from './key-generation.ts';
import { prepareKeyForCa, sampleKeyForCa } from './generated-key.ts';
import { Releases } from './releases.ts';
import { RemoteRequests, type RemoteCa } from './remote-requests.ts';
import { RequestQueue } from './request-queue.ts';
import {
  clearedBy,
  eventBase,
  keyed,
  recogniseOwnKey,
  recogniseServerKey,
  RequestTaken,
  spkiHash,
  subjectFor,
  useEvents,
  type EnrollmentOutcome,
  type EnrollmentRequest,
  type KeyedRequest,
  type RecognisedCsr,
  type RequestBase,
  type ServerKeyRequest,
} from './request.ts';

export interface EnrollmentOptions {
  readonly store: Store;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
  readonly keyGenerator: Pick<KeyGenerator, 'sample' | 'withKey'>;
  /** Seconds between polls of one request that reach a remote CA. */
  readonly retryAfter: number;
  readonly popLinking: PopLinkingPolicy;
}

/** A fresh serial collides with probability 2^-100; more than one new attempt means a broken generator. */
const SERIAL_ATTEMPTS = 3;

export class Enrollment {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #instance: string;
  readonly #queue: RequestQueue;
  readonly #keyGenerator: EnrollmentOptions['keyGenerator'];
  readonly #popLinking: PopLinkingPolicy;
  /** Approved requests whose key is being generated in this process. */
  readonly #generating = new Set<string>();
  readonly #releases: Releases;
  readonly #remote: RemoteRequests;

  constructor(options: EnrollmentOptions) {
    this.#store = options.store;
    this.#now = options.now;
    this.#instance = options.instance;
    this.#keyGenerator = options.keyGenerator;
    this.#popLinking = options.popLinking;
    this.#queue = new RequestQueue(options);
    this.#releases = new Releases(options.store, options.log);
    this.#remote = new RemoteRequests({ ...options, releases: this.#releases, interval: options.retryAfter * 1000 });
  }

  /**
   * Policy → prepare → reserve → sign → record; where the CA's `approval` is `manual`, queue → decision → the same.
   *
   * @throws EstuaryError 400 refused by policy or lint; 401 the OTP's last use went to another request; 403 rejected by
   *   an administrator; 500 or 503 from the CA or the store. In each case but 403 no OTP use is lost, and no
   *   certificate leaves.
   */
  async enroll(request: EnrollmentRequest): Promise<EnrollmentOutcome> {
    return this.enrollKeyed(keyed(request), async (row) =>
      keyed({ ...request, csr: await verifyCsr(parseCsr(row.csr)) }),
    );
  }

  /**
   * The same for a request of any format whose key its sender has been found to possess.
   *
   * @param reread the request that stands in a queued row
   * @throws EstuaryError as {@link enroll}
   */
  async enrollKeyed(
    request: KeyedRequest,
    reread: (row: RequestRow) => Promise<KeyedRequest>,
  ): Promise<EnrollmentOutcome> {
    refuseSubjectChange(request.csr);
    checkPopLinking(request.csr.challengePassword, request.linking, this.#popLinking);
    const remote = remoteCa(request.ca);
    if (!isQueueing(request) && remote === undefined)
      return { status: 'issued', certificate: await this.#issue(request, false) };
    return this.#queue.enroll({
      request,
      format: request.format,
      recognised: recogniseOwnKey(request.csr),
      keyType: request.publicKey.keyType,
      spkiSha256: spkiHash(request),
      check: () => this.#prepare(request),
      issue: async (row) => {
        const queued = await reread(row);
        const approved = { ...queued, csr: changeSubject(queued.csr), requestId: row.id };
        if (remote === undefined) return { status: 'issued', certificate: await this.#issue(approved, true) };
        const result = await this.#submit(approved, row, null);
        if ('known' in result) throw new RequestTaken();
        return result;
      },
      remote: remote && {
        submit: (row, supersedes) => this.#submit(request, row, supersedes),
        poll: (row) => this.#remote.poll(remote, row),
      },
    });
  }

  /**
   * The same for a key that we generate: everything that can be refused is, then the key is made, then a use is taken;
   * where the CA's `approval` is `manual`, the key is made by the poll that finds the request approved.
   *
   * @throws EstuaryError as {@link enroll}; 400 `KEY_TYPE_NOT_GENERATED`; 403 `KEY_SENT_ONCE` to who asks again for what
   *   was approved and issued
   */
  async enrollGenerated(request: ServerKeyRequest): Promise<EnrollmentOutcome> {
    const { ca, csr } = request;
    refuseSubjectChange(csr);
    checkPopLinking(csr.challengePassword, request.linking, this.#popLinking);
    const keyType = chooseKeyType(ca, csr.publicKey.keyType);
    if (!isQueueing(request))
      return { status: 'issued', certificate: await this.#issueGenerated(request, keyType, false) };
    return this.#queue.enroll({
      request,
      format: 'pkcs10',
      recognised: recogniseServerKey(csr),
      keyType,
      spkiSha256: null,
      check: async () => {
        await this.#checkForGenerated(request);
        // What a lint would find after the approval, with a key of the same kind.
        const names = namesFor(request.identity, csr);
        const sample = await sampleKeyForCa(request, names, keyType, this.#keyGenerator);
        return this.#prepare({ ...request, ...sample, own: undefined, format: 'pkcs10' });
      },
      issue: async (row) => {
        const approved = { ...request, csr: changeSubject(parseCsrWithoutProof(row.csr)), requestId: row.id };
        if (chooseKeyType(ca, row.key_type) !== row.key_type) throw keyTypeNotGenerated();
        return { status: 'issued', certificate: await this.#issueGenerated(approved, row.key_type, true) };
      },
    });
  }

  /** Whether this request was queued before, so that a token without a use left may ask for it again. */
  isQueued(label: string, operation: string, identity: Identity, csr: RecognisedCsr): Promise<boolean> {
    return this.#queue.isQueued(label, operation, identity, csr);
  }

  /** Looks into submissions to remote CAs whose answer was lost. Never rejects. */
  lookForUnanswered(cas: readonly Ca[]): Promise<void> {
    return this.#remote.lookForUnanswered(cas.flatMap((ca) => remoteCa(ca) ?? []));
  }

  /** Stops the background retries. */
  close(): void {
    this.#releases.close();
  }

  /** What can be refused before there is a key, and before anything reaches a CA elsewhere. */
  async #checkForGenerated(request: ServerKeyRequest): Promise<void> {
    checkPolicyForGenerated(request);
    const { remoteQueue } = request.ca.driver;
    if (remoteQueue !== undefined && !(await remoteQueue.issuesAtOnce()))
      throw queuedGeneratedKey('its profile queues');
  }

  async #issueGenerated(request: ServerKeyRequest, keyType: string, approved: boolean): Promise<Buffer> {
    await this.#checkForGenerated(request);
    // Of polls at once, one generates: a key takes up to seconds, and only one of them would be used.
    if (this.#generating.has(request.requestId)) throw new RequestTaken();
    this.#generating.add(request.requestId);
    try {
      const names = namesFor(request.identity, request.csr);
      const key = await request.generateKey(keyType, (generated) => prepareKeyForCa(request, names, generated));
      const generated: AuditEvent = {
        ...eventBase(request),
        type: 'key.generated',
        outcome: 'success',
        detail: key.publicKey.keyType,
      };
      const events = [...request.events, generated];
      return await this.#issue({ ...request, ...key, own: undefined, format: 'pkcs10', events }, approved);
    } finally {
      this.#generating.delete(request.requestId);
    }
  }

  /** @param approved its OTP use was taken when it was queued, and no other process may issue it */
  async #issue(request: KeyedRequest, approved: boolean): Promise<Buffer> {
    const prepared = await this.#reserve(request, approved);
    const archivedKeyId = await this.#archive(request);
    const certificate = await this.#sign(request, prepared);
    // Of what was queued, the use was taken when it was.
    await this.#record(request, certificate, archivedKeyId, approved ? [] : clearedBy(request));
    return certificate;
  }

  async #submit(
    request: KeyedRequest,
    row: RequestRow,
    supersedes: string | null,
  ): Promise<EnrollmentOutcome | { readonly known: RequestRow }> {
    return this.#remote.submit(request, await this.#prepare(request), row, supersedes);
  }

  /** What csrattrs asks for, policy, and everything that the CA can check before its key is used. */
  async #prepare(request: KeyedRequest): Promise<PreparedIssuance> {
    const { requestId, ca, csr, identity, publicKey, proof, own, operation, format } = request;
    const names = namesFor(identity, csr);
    ca.csrAttributes.check(csr, own);
    checkPolicy(ca.profile, { ...names, publicKey, extensions: csr.extensions });
    const forwarded = operation === 'fullcmc' && csr.renamed !== true ? { format, der: csr.der } : undefined;
    return ca.driver.prepare({ ...names, request_id: requestId, spki: publicKey.spki, csr: proof, forwarded });
  }

  async #reserve(request: KeyedRequest, approved: boolean): Promise<PreparedIssuance> {
    const { ca, csr, identity } = request;
    for (let attempt = 0; attempt < SERIAL_ATTEMPTS; attempt++) {
      const prepared = await this.#prepare(request);
      const reservation: Reservation = {
        request_id: request.requestId,
        instance: this.#instance,
        ca: ca.label,
        serial: prepared.serial,
        requester: identity.requester,
        operation: request.operation,
        subject: formatName(subjectFor(identity, csr)),
        spki_sha256: spkiHash(request),
        otp_id: !approved && identity.method === 'otp' ? identity.otp_id : null,
        created_at: this.#now(),
      };
      const events: readonly AuditEvent[] = [
        ...request.events,
        { ...eventBase(request), type: 'request.received', outcome: 'success', detail: request.operation },
        ...(approved ? [] : useEvents(request)),
      ];
      const result = approved
        ? await this.#store.claimRequest(reservation, events)
        : await this.#store.reserve(reservation, events);
      if (result === 'request-taken') throw new RequestTaken();
      if (result === 'otp-unusable')
        throw unauthorized('OTP_INVALID', 'invalid OTP token', { detail: 'no use left at the reservation' });
      if (result === 'reserved') return prepared;
    }
    throw failed('SERIAL_EXHAUSTED', 'The CA could not choose a serial number.');
  }

  /**
   * Where the CA's keys are archived, nothing is signed, and no key leaves, before the archive has it.
   *
   * @returns the archive's identifier of the key
   */
  async #archive(request: KeyedRequest): Promise<string | null> {
    if (request.sealed === undefined) return null;
    const event = { ...eventBase(request), type: 'key.archived' } as const;
    try {
      const id = await request.sealed.archive(request.requestId);
      await this.#store.audit([{ ...event, outcome: 'success', detail: id }]);
      return id;
    } catch (error) {
      await this.#release(request, describe(error), [{ ...event, outcome: 'failure', detail: describe(error) }]);
      if (error instanceof EstuaryError) throw error;
      throw failed('KEY_ARCHIVAL_FAILED', 'The key could not be archived.', { detail: describe(error), cause: error });
    }
  }

  async #sign(request: KeyedRequest, prepared: PreparedIssuance): Promise<Buffer> {
    try {
      const result = await prepared.issue();
      if (result.status === 'issued') return result.certificate;
      if (result.status === 'rejected') throw forbidden('CA_REJECTED', result.reason);
      // It said that it would not queue. The key is gone with this request: nobody could use what may be issued later.
      throw queuedGeneratedKey(result.status === 'pending' ? `waits at the CA as ${result.reference}` : result.status);
    } catch (error) {
      await this.#release(request, describe(error));
      if (error instanceof EstuaryError) throw error;
      throw failed('CA_SIGNING_FAILED', 'The CA could not sign the certificate.', {
        detail: describe(error),
        cause: error,
      });
    }
  }

  async #record(
    request: KeyedRequest,
    der: Buffer,
    archivedKeyId: string | null,
    succeeded: readonly string[],
  ): Promise<void> {
    const row = certificateRow(der, {
      ca: request.ca.label,
      requester: request.identity.display,
      method: request.identity.method,
      request_id: request.requestId,
      archived_key_id: archivedKeyId,
    });
    const event = { ...eventBase(request), serial: row.serial };
    try {
      const events: readonly AuditEvent[] = [
        { ...event, type: 'ca.signature', outcome: 'success' },
        { ...event, type: 'certificate.issued', outcome: 'success', detail: request.operation },
      ];
      await this.#store.recordCertificate(row, events, succeeded);
    } catch (error) {
      await this.#release(request, describe(error));
      throw error;
    }
  }

  /** Closes the reservation without a certificate. */
  #release(request: KeyedRequest, reason: string, causes: readonly AuditEvent[] = []): Promise<void> {
    return this.#releases.release(request.requestId, [
      ...causes,
      { ...eventBase(request), type: 'certificate.failed', outcome: 'failure', detail: reason },
    ]);
  }
}

const queuedGeneratedKey = (detail: string): EstuaryError =>
  failed('CA_QUEUED_GENERATED_KEY', 'The CA queues requests, so it issues for keys of the client only.', { detail });

function remoteCa(ca: Ca): RemoteCa | undefined {
  const { remoteQueue: queue } = ca.driver;
  return queue === undefined ? undefined : { ca, queue };
}

/** Whether an administrator has to agree first, or did. */
function isQueueing({ ca, identity }: RequestBase): boolean {
  // A token without a use left has only its queued request, whatever the configuration says by now.
  return ca.config.approval === 'manual' || (identity.method === 'otp' && !identity.usable);
}

/** What csrattrs and policy say before there is a key. */
function checkPolicyForGenerated({ ca, identity, csr }: ServerKeyRequest): void {
  ca.csrAttributes.check(csr, undefined);
  checkPolicy(ca.profile, { ...namesFor(identity, csr), publicKey: undefined, extensions: csr.extensions });
}

/** The names that the certificate gets. */
function namesFor(identity: Identity, csr: CsrContent): Pick<CsrContent, 'subject' | 'subjectAltNames'> {
  return { subject: subjectFor(identity, csr), subjectAltNames: csr.subjectAltNames };
}
