/**
 * The pipeline: every way in walks the same stages (docs/internals/architecture.md), each of which takes what the one before returns. Knows no HTTP.
 *
 *   Received → Authenticated → Admitted → Proven → Authorized → Keyed → Checked → Allowed → Queued | Submitted | Reserved → Signed → Recorded → answer
 *
 * Longer than other files: the order of the stages, for new requests and those in the queue, is to be read in one place.
 */
import { certificateFailed } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { EstAuthenticator } from '../auth/est-authenticator.ts';
import type { FailureRecords } from '../auth/failure-records.ts';
import { tokenOf, type Identity } from '../auth/identity.ts';
import type { OtpService } from '../auth/otp/otp-service.ts';
import type { Ca } from '../ca/router.ts';
import { describe, EstuaryError, failed, forbidden, isRefusal } from '../errors.ts';
import type { Logger } from '../log.ts';
import { noteOnRequest } from '../request-context.ts';
import { stateOf } from '../store/request-state.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { Store } from '../store/store.ts';
import { Admitted, deviceInHistory, type Requester } from './admitted.ts';
import { Allowed } from './allowed.ts';
import type { Authorizer } from './authorization/external-authorization.ts';
import { Authenticated, checkRequester } from './authenticated.ts';
import { Authorized, type AuthorizationRules } from './authorized.ts';
import { Checked, checkWithoutKey } from './checked.ts';
import { type Csr, parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { hasSecrets, secretsCannotGoOn } from '../pki/pkcs10/challenges.ts';
import { Recorded, Reserved, Signed, type Issuance } from './issue.ts';
import { checkKeyForm, chooseProtection, type KeyProtectionSettings } from './key-protection.ts';
import { chooseKeyType, keyTypeNotGenerated, type KeyGenerator } from './key-generation.ts';
import { Keyed, type Delivery } from './keyed.ts';
import { hasSameNames, parseCertifiedNames, requestsOwnNames } from './names.ts';
import { Proven } from './proven.ts';
import { Queued, RequestQueue, type Known } from './queue.ts';
import { keySentOnce, Repeats, RequestRepeated, underWay } from './repeats.ts';
import { ReservationReleaser } from './reservation-releaser.ts';
import { RemoteRequests, type RemoteCa } from './remote-requests.ts';
import {
  bodyOf,
  deniedEvent,
  eventBase,
  RequestTaken,
  type EnrollmentOutcome,
  type ReceivedByEst,
  type RequestBase,
} from './request.ts';

interface EnrollmentOptions {
  readonly store: Store;
  readonly log: Logger;
  readonly now: () => number;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
  readonly authenticator: EstAuthenticator;
  readonly otp: Pick<OtpService, 'refuseUnusable' | 'refuseRepeat' | 'hashSecret'>;
  readonly failures: Pick<FailureRecords, 'record'>;
  readonly rules: AuthorizationRules;
  /** For CAs with `[ca.authorization]`. */
  readonly authorization: Authorizer;
  readonly keyGenerator: Pick<KeyGenerator, 'generate' | 'sample'>;
  /** In force; a reload replaces it. */
  readonly keyProtection: () => KeyProtectionSettings;
  /** Seconds between polls of one request that reach a remote CA. */
  readonly retryAfter: number;
  /** `otp.retry_window`, in milliseconds. */
  readonly retryWindow: number;
  /** Milliseconds that a repeated request waits for the one in progress. */
  readonly maxWait: number;
}

/**
 * A concurrent identical request may be reserved between lookup and reservation, and fail; more attempts indicate an
 * inconsistent store.
 */
const REPEAT_ATTEMPTS = 5;

/** A request's outcome and requester. */
export interface Enrolled {
  readonly outcome: EnrollmentOutcome;
  readonly identity: Identity;
}

/** A poll of a queued request, and the delivery of a generated key. */
interface Poll {
  readonly request: RequestBase;
  readonly delivery: Delivery | undefined;
}

export class Enrollment {
  readonly #options: EnrollmentOptions;
  readonly #issuance: Issuance;
  readonly #queue: RequestQueue;
  readonly #releaser: ReservationReleaser;
  readonly #repeats: Repeats;
  readonly #remote: RemoteRequests;
  /** Approved requests whose key this process is generating. */
  readonly #generating = new Set<string>();

  constructor(options: EnrollmentOptions) {
    this.#options = options;
    this.#queue = new RequestQueue(options);
    this.#releaser = new ReservationReleaser(options.store, options.log);
    const repeats = new Repeats({ ...options, queue: this.#queue });
    this.#repeats = repeats;
    this.#issuance = { ...options, releaser: this.#releaser, repeats };
    const interval = options.retryAfter * 1000;
    this.#remote = new RemoteRequests({ ...options, releaser: this.#releaser, repeats, interval });
  }

  /**
   * Runs all stages for a simpleenroll, simplereenroll or serverkeygen request (docs/internals/architecture.md). A
   * rejection of an authenticated requester is audited before the response.
   *
   * @throws EstuaryError 401; 403 requester or names; 400 body, link, csrattrs, policy, lint; 403 rejected, or a key that was sent; 500 or
   *   503 from the CA or the store. Except after a decision no OTP use is lost, and no certificate leaves
   */
  async enroll(received: ReceivedByEst): Promise<Enrolled> {
    const authenticated = await Authenticated.byEst(received, { ...this.#options, repeats: this.#repeats });
    let { request } = authenticated;
    try {
      const admitted = await this.admit(authenticated);
      ({ request } = admitted);
      await checkRequester(authenticated);
      const authorized = await this.authorize(admitted, await Proven.byEst(received));
      const outcome = await this.certify(authorized, () => received.isGone());
      return { outcome, identity: request.identity };
    } catch (error) {
      await this.#auditDenial(request, error, received);
      throw error;
    }
  }

  /**
   * {@link enroll} up to the queue and the reservation, for an assumed sender.
   * @param der of a CSR
   * @returns what would be signed, or `queued`
   * @throws EstuaryError as {@link enroll}
   */
  async dryRun(authenticated: Authenticated, der: Buffer): Promise<{ allowed: Allowed; queued: boolean }> {
    const checked = await this.#checkDryRun(authenticated, () => Proven.forDryRun(der));
    const allowed = await Allowed.of(checked, this.#options.authorization);
    const { ca } = authenticated.request;
    const waits = ca.config.approval === 'manual' || (await remoteCa(ca)?.queue.issuesAtOnce()) === false;
    return { allowed, queued: waits };
  }

  /**
   * {@link enroll} up to the external authorization, for a renewal whose key exists nowhere.
   * @returns DER of the TBSCertificate; undefined: another CA decides
   * @throws EstuaryError as {@link enroll}
   */
  async simulate(authenticated: Authenticated, csr: () => Promise<Csr>): Promise<Buffer | undefined> {
    const checked = await this.#checkDryRun(authenticated, async () => Proven.simulated(await csr()));
    return checked.prepared.tbs;
  }

  async #checkDryRun(authenticated: Authenticated, prove: () => Promise<Proven>): Promise<Checked> {
    const admitted = await this.admit(authenticated);
    await checkRequester(authenticated);
    const authorized = await this.authorize(admitted, await prove());
    checkSecrets(authorized);
    return this.#checkWaiting(authorized);
  }

  /**
   * {@link resume} of an approved request up to the reservation, for a simulated poll.
   * @throws EstuaryError as {@link enroll}
   */
  async dryRunQueued(poll: Authenticated, row: RequestRow): Promise<Allowed> {
    const { request } = await Admitted.toQueued(poll, row, this.#options);
    const approved = await Authorized.queued(request, row);
    checkKeyType(request.ca, row);
    return this.#allow(await this.#checkWaiting(approved, row.key_type), row);
  }

  /** @throws EstuaryError 403 if the CA issues only to registered devices, and the requester is not one */
  admit(authenticated: Authenticated): Promise<Admitted> {
    return Admitted.of(authenticated, this.#options);
  }

  /** @throws EstuaryError 403 names; 400 the link between key and sender */
  async authorize(admitted: Admitted, proven: Proven): Promise<Authorized> {
    const { rules, store } = this.#options;
    const { request, right } = admitted;
    const { ca } = request;
    const mayHaveMore = right.kind === 'renewal' && ca.ownIsRecorded && !hasSameNames(proven.csr, right.certificate);
    const before = mayHaveMore ? await store.getAuthorizedNames(right.certificate.serialNumber, ca.label) : undefined;
    return Authorized.of(admitted, proven, rules, before === undefined ? undefined : parseCertifiedNames(before));
  }

  /**
   * Takes an authorized request to its certificate or, with `approval = "manual"` or a queuing CA, into the queue. A
   * repeat with the same token gets the first outcome.
   * @param isGone whether the client has disconnected
   * @throws EstuaryError as {@link enroll}
   */
  async certify(authorized: Authorized, isGone: () => boolean = () => false): Promise<EnrollmentOutcome> {
    checkSecrets(authorized);
    const delivery = this.#delivery(authorized, isGone);
    for (let attempt = 0; attempt < REPEAT_ATTEMPTS; attempt++) {
      const again = await this.#repeats.answer(authorized, isGone);
      if (again !== undefined) return again;
      try {
        return await this.#accept(authorized, delivery);
      } catch (error) {
        // A concurrent identical request was reserved first.
        if (!(error instanceof RequestRepeated)) throw error;
      }
    }
    throw underWay();
  }

  async #accept(authorized: Authorized, delivery: Delivery | undefined): Promise<EnrollmentOutcome> {
    const { request } = authorized;
    const remote = delivery === undefined ? remoteCa(request.ca) : undefined;
    const isDirect = request.ca.config.approval === 'auto' && remote === undefined;
    if (isDirect && !mayBePoll(request)) return this.#issue(authorized, delivery);
    const found = await this.#queue.find(authorized);
    if ('row' in found) return this.#answerKnown({ request, delivery }, found);
    if (isDirect) return this.#issue(authorized, delivery);
    const allowed = await Allowed.of(
      await this.#checkWaiting(authorized, delivery?.keyType),
      this.#options.authorization,
    );
    const row = this.#queue.rowOf(allowed, found, await this.#hashedChallenge(authorized));
    const result =
      request.ca.config.approval === 'auto'
        ? await this.#remote.submit(allowed, row, found.supersedes)
        : await Queued.of(allowed, row, found, this.#options.store);
    if (result instanceof Queued) return result.outcome;
    // A concurrent identical request was queued first.
    return 'id' in result ? this.#answerKnown({ request, delivery }, await this.#queue.known(result)) : result;
  }

  /**
   * Continues a queued request polled by its requester or an authorized party.
   * @throws EstuaryError as {@link enroll}
   */
  async resume(poll: Authenticated, row: RequestRow): Promise<EnrollmentOutcome> {
    const { request } = await Admitted.toQueued(poll, row, this.#options);
    return this.#answerKnown({ request, delivery: undefined }, await this.#queue.known(row));
  }

  /** Looks up submissions to remote CAs whose response was lost. Never rejects. */
  lookForUnanswered(cas: readonly Ca[]): Promise<void> {
    return this.#remote.lookForUnanswered(cas.flatMap((ca) => remoteCa(ca) ?? []));
  }

  /** Stops the background retries. */
  close(): void {
    this.#releaser.close();
  }

  /** Hash of the secret that lets the certificate's holder revoke it (RFC 7894 §3.2). */
  async #hashedChallenge({ csr: { revocationChallenge } }: Authorized): Promise<string | undefined> {
    return revocationChallenge === undefined ? undefined : this.#options.otp.hashSecret(revocationChallenge);
  }

  /** How to deliver a generated key; undefined for the requester's own. @throws EstuaryError 400 */
  #delivery({ request, csr, key }: Authorized, isGone: () => boolean): Delivery | undefined {
    if (key.kind === 'own') return undefined;
    const { ca, identity } = request;
    const protection = chooseProtection(this.#options.keyProtection(), csr, identity, this.#options.now());
    checkKeyForm(ca, protection);
    return { keyType: chooseKeyType(ca, key.likeKeyType), protection, isGone };
  }

  /** The stages after authorization. @param queued the row of a queued request */
  async #issue(
    authorized: Authorized,
    delivery: Delivery | undefined,
    queued?: RequestRow,
  ): Promise<EnrollmentOutcome> {
    const keyed = await this.#key(authorized, delivery);
    try {
      const allowed = await this.#allow(await this.#check(keyed), queued);
      // A queued request was hashed before.
      const challenge = queued ? authorized.csr.revocationChallenge : await this.#hashedChallenge(authorized);
      const reserved = await Reserved.of(allowed, this.#issuance, queued !== undefined);
      const recorded = await Recorded.of(await Signed.of(reserved, this.#issuance), this.#issuance, challenge);
      return recorded.outcome;
    } catch (error) {
      keyed.key.part?.der.fill(0);
      throw error;
    }
  }

  #allow(checked: Checked, queued: RequestRow | undefined): Promise<Allowed> {
    const { authorization } = this.#options;
    return queued === undefined ? Allowed.of(checked, authorization) : Allowed.queued(checked, queued, authorization);
  }

  /** Runs all checks that can reject the request before it generates a key. */
  async #key(authorized: Authorized, delivery: Delivery | undefined): Promise<Keyed> {
    if (authorized.key.kind === 'own') return Keyed.own(authorized, authorized.key);
    if (delivery === undefined) throw failed('KEY_UNDELIVERABLE', 'A generated key cannot be delivered this way.');
    await checkWithoutKey(authorized);
    // Of concurrent polls, one generates: a key takes up to seconds, and only one would be used.
    const { requestId } = authorized.request;
    if (this.#generating.has(requestId)) throw new RequestTaken();
    this.#generating.add(requestId);
    try {
      return await Keyed.generated(authorized, delivery, { keys: this.#options.keyGenerator, now: this.#options.now });
    } finally {
      this.#generating.delete(requestId);
    }
  }

  /** {@link Checked.of}; a CA that is out of use leaves a record. @throws EstuaryError as there */
  async #check(keyed: Keyed): Promise<Checked> {
    try {
      return await Checked.of(keyed);
    } catch (error) {
      const { request } = keyed;
      if (error instanceof EstuaryError && error.code === 'CA_UNAVAILABLE' && request.dryRun !== true)
        await this.#options.store.audit([...request.events, certificateFailed(eventBase(request), describe(error))]);
      throw error;
    }
  }

  /**
   * Checks that what an administrator sees could be issued, with a sample key of the same type if it does not exist yet.
   */
  async #checkWaiting(authorized: Authorized, keyType?: string): Promise<Checked> {
    if (authorized.key.kind === 'own') return this.#check(Keyed.own(authorized, authorized.key));
    await checkWithoutKey(authorized);
    return this.#check(
      await Keyed.sample(authorized, keyType ?? authorized.key.likeKeyType, this.#options.keyGenerator),
    );
  }

  async #answerKnown(poll: Poll, { row, certificate }: Known): Promise<EnrollmentOutcome> {
    const { request } = poll;
    const { store } = this.#options;
    // Rejections are audited with the authentication's events, like all others.
    switch (stateOf(row)) {
      case 'approved':
        return this.#issueApproved(poll, row);
      case 'pending':
        await store.audit(request.events);
        return pending(row);
      case 'pending at the CA': {
        const remote = remoteCa(request.ca);
        const outcome = remote && (await this.#remote.poll(remote, row));
        await store.audit(request.events);
        return outcome ?? pending(row);
      }
      case 'rejected':
        throw forbidden('REQUEST_REJECTED', row.reason ?? 'The request was rejected.');
      case 'failed':
        throw forbidden('REQUEST_CANCELED', row.reason ?? 'The request was canceled.');
      case 'issued':
      case 'expired':
        if (row.spki_sha256 === null && row.status === 'issued') throw keySentOnce(row);
        await store.audit(request.events);
        if (certificate === undefined)
          throw failed('CERTIFICATE_MISSING', 'The certificate of this request cannot be found.', {
            detail: `request ${row.id}: ${row.status}, certificate ${row.ca} ${row.serial}`,
          });
        noteOnRequest({ serial: certificate.serial });
        return { status: 'issued', certificate: certificate.der };
    }
  }

  /**
   * Issues a queued request on the poll that finds it approved; the poll determines the protection of a generated key.
   */
  async #issueApproved({ request, delivery }: Poll, row: RequestRow): Promise<EnrollmentOutcome> {
    try {
      const approved = await Authorized.queued(request, row);
      const remote = row.spki_sha256 === null ? undefined : remoteCa(request.ca);
      if (remote !== undefined) {
        const allowed = await this.#allow(await this.#checkWaiting(approved), row);
        const result = await this.#remote.submit(allowed, row, null);
        if ('id' in result) throw new RequestTaken();
        return result;
      }
      checkKeyType(request.ca, row);
      return await this.#issue(approved, delivery && { ...delivery, keyType: row.key_type }, row);
    } catch (error) {
      if (error instanceof RequestTaken) return this.#afterOther({ request, delivery }, row);
      if (isRefusal(error)) await this.#queue.fail(request, row.id, error);
      throw error;
    }
  }

  /** Another poll is issuing it, or has issued it. */
  async #afterOther(poll: Poll, { id }: RequestRow): Promise<EnrollmentOutcome> {
    const { store } = this.#options;
    const row = await store.getRequest(id);
    if (row?.status === 'issued') return this.#answerKnown(poll, await this.#queue.known(row));
    await store.audit(poll.request.events);
    return { status: 'pending', requestId: id };
  }

  async #auditDenial(request: RequestBase, error: unknown, received: ReceivedByEst): Promise<void> {
    if (!isRefusal(error)) return;
    const isRenewal = requestsOwnNames(request.identity, () => parseCsrWithoutProof(bodyOf(received)));
    const denied = deniedEvent(request, request.operation, error.code, describe(error), isRenewal);
    await this.recordDenial(request, [...request.events, denied]);
  }

  /** Commits a denial; the device's history shows it. @throws EstuaryError 500 or 503 from the store */
  async recordDenial(
    requester: Requester & Pick<RequestBase, 'device' | 'foundDevice'>,
    events: readonly AuditEvent[],
  ): Promise<void> {
    const { store } = this.#options;
    const { device, foundDevice = device } = requester;
    const { key } = foundDevice ?? (await deviceInHistory(requester, store)) ?? {};
    await (key === undefined ? store.audit(events) : store.auditDevice(key, events));
  }
}

/** @throws EstuaryError 400 if the CA receives the CSR unchanged, and it contains secrets */
function checkSecrets({ request, csr }: Authorized): void {
  if (request.ca.driver.takesCsr === true && hasSecrets(csr)) throw secretsCannotGoOn();
}

/** @throws EstuaryError 400 if the server no longer generates the approved key type */
function checkKeyType(ca: Ca, { spki_sha256, key_type }: RequestRow): void {
  if (spki_sha256 === null && chooseKeyType(ca, key_type) !== key_type) throw keyTypeNotGenerated();
}

const pending = ({ id }: RequestRow): EnrollmentOutcome => ({ status: 'pending', requestId: id });

function remoteCa(ca: Ca): RemoteCa | undefined {
  const { remoteQueue: queue } = ca.driver;
  return queue === undefined ? undefined : { ca, queue };
}

/** A used-up token may still poll the request that it was used for, whatever the configuration says now. */
const mayBePoll = ({ identity }: RequestBase): boolean => tokenOf(identity)?.usable === false;
