/**
 * The heart: turns an authenticated, authorised request into a certificate. Knows no HTTP.
 *
 * Issuance is two-phase. The intent (CA, serial, requester, one OTP use) is committed before the CA signs, the
 * certificate is committed before it is answered; a crash between the two leaves a reservation that start-up
 * reconciles. docs/issuance.md tells why.
 */
import { createHash } from 'node:crypto';
import type { AuditEvent } from '../audit/event.ts';
import type { Identity } from '../auth/identity.ts';
import { checkPolicy } from '../ca/profile.ts';
import type { Ca } from '../ca/router.ts';
import type { PreparedIssuance } from '../ca/driver.ts';
import { describe, EstuaryError, failed, unauthorized } from '../errors.ts';
import type { Logger } from '../log.ts';
import { parseCertificate } from '../pki/certificate.ts';
import type { CsrContent, VerifiedCsr } from '../pki/csr.ts';
import { formatGeneralName } from '../pki/general-name.ts';
import { formatName, type Name } from '../pki/name.ts';
import type { PublicKeyInfo } from '../pki/public-key.ts';
import type { Store } from '../store/store.ts';

interface RequestBase {
  readonly requestId: string;
  readonly operation: string;
  readonly ca: Ca;
  readonly identity: Identity;
  readonly address: string;
  /** Of the authentication, committed with the intent. */
  readonly events: readonly AuditEvent[];
}

/** The request's own key, whose possession it proves. */
interface ClientKeyRequest extends RequestBase {
  readonly csr: VerifiedCsr;
  readonly generateKey?: undefined;
}

/** A key that we generate. */
interface ServerKeyRequest extends RequestBase {
  readonly csr: CsrContent;
  /** Called once, when policy has passed and before an OTP use is taken. */
  generateKey(): Promise<PublicKeyInfo>;
}

/** An authorised request for one certificate. */
export type EnrollmentRequest = ClientKeyRequest | ServerKeyRequest;

/** The key to certify. */
interface RequestedKey {
  readonly publicKey: PublicKeyInfo;
  /** undefined: the key is not the client's. */
  readonly csr: VerifiedCsr | undefined;
}

export type EnrollmentOutcome =
  { readonly status: 'issued'; /** DER */ readonly certificate: Buffer } | { readonly status: 'pending' };

export interface EnrollmentOptions {
  readonly store: Store;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
}

/** A fresh serial collides with probability 2^-100; more than one new attempt means a broken generator. */
const SERIAL_ATTEMPTS = 3;
/** Milliseconds between attempts to close reservations that the store could not close. */
const RELEASE_RETRY = 2000;

export class Enrollment {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #instance: string;
  readonly #unreleased = new Map<string, readonly AuditEvent[]>();
  #releaseTimer: NodeJS.Timeout | undefined;

  constructor(options: EnrollmentOptions) {
    this.#store = options.store;
    this.#log = options.log;
    this.#now = options.now;
    this.#instance = options.instance;
  }

  /**
   * Policy → prepare → reserve → sign → record.
   *
   * @throws EstuaryError 400 refused by policy or lint; 401 the OTP's last use went to another request; 500 or 503
   *   from the CA or the store. In each case no OTP use is lost and no certificate leaves.
   */
  async enroll(request: EnrollmentRequest): Promise<EnrollmentOutcome> {
    const { ca, csr, identity } = request;
    const subject = subjectFor(identity, csr);
    checkPolicy(ca.profile, {
      subject,
      subjectAltNames: csr.subjectAltNames,
      publicKey: request.generateKey === undefined ? csr.publicKey : undefined,
      extensions: csr.extensions,
    });
    const prepared = await this.#reserve(request, subject, await keyOf(request));
    const certificate = await this.#sign(request, prepared);
    await this.#record(request, certificate);
    return { status: 'issued', certificate };
  }

  /** Stops the background retries. */
  close(): void {
    clearTimeout(this.#releaseTimer);
  }

  async #reserve(request: EnrollmentRequest, subject: Name, key: RequestedKey): Promise<PreparedIssuance> {
    const { ca, csr, identity } = request;
    const { spki } = key.publicKey;
    for (let attempt = 0; attempt < SERIAL_ATTEMPTS; attempt++) {
      const prepared = await ca.driver.prepare({
        request_id: request.requestId,
        subject,
        subjectAltNames: csr.subjectAltNames,
        spki,
        csr: key.csr,
      });
      const result = await this.#store.reserve(
        {
          request_id: request.requestId,
          instance: this.#instance,
          ca: ca.label,
          serial: prepared.serial,
          requester: identity.requester,
          operation: request.operation,
          subject: formatName(subject),
          spki_sha256: createHash('sha256').update(spki).digest('hex'),
          otp_id: identity.method === 'otp' ? identity.otp_id : null,
          created_at: this.#now(),
        },
        [
          ...request.events,
          { ...eventBase(request), type: 'request.received', outcome: 'success', detail: request.operation },
          ...keyGenerated(request, key),
        ],
      );
      if (result === 'otp-unusable')
        throw unauthorized('OTP_INVALID', 'invalid OTP token', { detail: 'no use left at the reservation' });
      if (result === 'reserved') return prepared;
    }
    throw failed('SERIAL_EXHAUSTED', 'The CA could not choose a serial number.');
  }

  async #sign(request: EnrollmentRequest, prepared: PreparedIssuance): Promise<Buffer> {
    try {
      const result = await prepared.issue();
      if (result.status === 'issued') return result.certificate;
      throw failed('CA_PENDING_UNSUPPORTED', 'The CA queued the request, which this CA must not do.');
    } catch (error) {
      await this.#release(request, describe(error));
      if (error instanceof EstuaryError) throw error;
      throw failed('CA_SIGNING_FAILED', 'The CA could not sign the certificate.', {
        detail: describe(error),
        cause: error,
      });
    }
  }

  async #record(request: EnrollmentRequest, der: Buffer): Promise<void> {
    const certificate = parseCertificate(der);
    const event = { ...eventBase(request), serial: certificate.serialNumber };
    try {
      await this.#store.recordCertificate(
        {
          ca: request.ca.label,
          serial: certificate.serialNumber,
          subject: formatName(certificate.subject),
          sans: certificate.subjectAltNames.map(formatGeneralName),
          not_before: certificate.notBefore.getTime(),
          not_after: certificate.notAfter.getTime(),
          der,
          fingerprint_sha256: certificate.fingerprint,
          requester: request.identity.display,
          method: request.identity.method,
          request_id: request.requestId,
          revoked_at: null,
          reason: null,
          invalidity_date: null,
        },
        [
          { ...event, type: 'ca.signature', outcome: 'success' },
          { ...event, type: 'certificate.issued', outcome: 'success', detail: request.operation },
        ],
      );
    } catch (error) {
      await this.#release(request, describe(error));
      throw error;
    }
  }

  /** Closes the reservation without a certificate; where even that fails, goes on trying in the background. */
  async #release(request: EnrollmentRequest, reason: string): Promise<void> {
    const events: readonly AuditEvent[] = [
      { ...eventBase(request), type: 'certificate.failed', outcome: 'failure', detail: reason },
    ];
    try {
      await this.#store.releaseReservation(request.requestId, events);
    } catch (error) {
      this.#log.error({ request_id: request.requestId, detail: describe(error) }, 'reservation left open; will retry');
      this.#unreleased.set(request.requestId, events);
      this.#scheduleRelease();
    }
  }

  #scheduleRelease(): void {
    clearTimeout(this.#releaseTimer);
    this.#releaseTimer = setTimeout(() => void this.#retryReleases(), RELEASE_RETRY).unref();
  }

  async #retryReleases(): Promise<void> {
    for (const [requestId, events] of this.#unreleased) {
      try {
        await this.#store.releaseReservation(requestId, events);
        this.#unreleased.delete(requestId);
      } catch {
        this.#scheduleRelease();
        return;
      }
    }
  }
}

/** The subject that the certificate gets: a Kerberos principal's mapped one, else the CSR's. */
function subjectFor(identity: Identity, csr: CsrContent): Name {
  return identity.method === 'gssapi' ? identity.subject : csr.subject;
}

async function keyOf(request: EnrollmentRequest): Promise<RequestedKey> {
  if (request.generateKey === undefined) return { publicKey: request.csr.publicKey, csr: request.csr };
  return { publicKey: await request.generateKey(), csr: undefined };
}

function keyGenerated(request: EnrollmentRequest, { publicKey }: RequestedKey): AuditEvent[] {
  if (request.generateKey === undefined) return [];
  return [{ ...eventBase(request), type: 'key.generated', outcome: 'success', detail: publicKey.keyType }];
}

function eventBase(request: EnrollmentRequest): Pick<AuditEvent, 'subject' | 'address' | 'ca' | 'request_id'> {
  return {
    subject: request.identity.display,
    address: request.address,
    ca: request.ca.label,
    request_id: request.requestId,
  };
}
