/**
 * The two phases of an issuance. The intent (CA, serial, requester, one OTP use) is committed before the CA signs, the certificate before
 * it is answered; a crash between the two leaves a reservation that start-up reconciles (docs/internals/issuance.md).
 */
import { auditedCertificate, certificateFailed, certificateIssued } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import { SubmissionUnanswered, type IssuanceResult, type PreparedIssuance } from '../ca/driver.ts';
import { tokenOf } from '../auth/identity.ts';
import { describe, EstuaryError, failed, forbidden } from '../errors.ts';
import { formatName } from '../pki/x509/name.ts';
import { spkiHash } from '../pki/x509/public-key.ts';
import type { IssuanceStore, Reservation } from '../store/issuance-store.ts';
import { StoreLost } from '../store/calls/errors.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { Repeatable } from '../store/otp-store.ts';
import { certificateRow } from './certificate-row.ts';
import { namesBeyond } from './names.ts';
import type { Allowed } from './allowed.ts';
import { queuedGeneratedKey } from './checked.ts';
import { measured } from '../dependency-calls.ts';
import type { Keyed } from './keyed.ts';
import { RequestRepeated, type Repeats } from './repeats.ts';
import {
  deviceOf,
  eventBase,
  receivedEvents,
  refuseDryRun,
  refuseUnusable,
  RequestTaken,
  rescuedRequest,
  type EnrollmentOutcome,
} from './request.ts';
import type { ReservationReleaser } from './reservation-releaser.ts';
import { noteOnRequest } from '../request-context.ts';

export interface Issuance {
  readonly store: AuditStore & IssuanceStore;
  readonly releaser: Pick<ReservationReleaser, 'release'>;
  readonly repeats: Pick<Repeats, 'repeatable'>;
  /** This process, as the owner of its reservations. */
  readonly instance: string;
  readonly now: () => number;
}

type Issued = Extract<IssuanceResult, { status: 'issued' }>;

/** A random serial collides with probability 2^-100; repeated collisions indicate a broken generator. */
const SERIAL_ATTEMPTS = 3;

/** The intent is committed. */
export class Reserved {
  readonly keyed: Keyed;
  readonly #prepared: PreparedIssuance;

  private constructor({ keyed, prepared }: Allowed) {
    this.keyed = keyed;
    this.#prepared = prepared;
  }

  get prepared(): PreparedIssuance {
    return this.#prepared;
  }

  /**
   * Also takes the OTP use, unless queuing did.
   * @param waited it was queued, and no other process may issue it
   * @throws EstuaryError 401 if another request took the OTP's last use; 403 if the device was disabled; 500; 503;
   * RequestTaken if another poll issues it; RequestRepeated if the same request has the use
   */
  static async of(first: Allowed, issuance: Issuance, waited: boolean): Promise<Reserved> {
    const { request } = first.keyed;
    refuseDryRun(request);
    let allowed = first;
    for (let attempt = 0; attempt < SERIAL_ATTEMPTS; attempt++) {
      if (attempt > 0) allowed = await allowed.again();
      const reservation = reservationOf(allowed, issuance);
      const events = receivedEvents(request, !waited);
      const { store } = issuance;
      const result = await (
        waited
          ? store.claimRequest(reservation, events)
          : store.reserve(reservation, events, repeatableOf(allowed.keyed, issuance))
      ).catch(async (error: unknown) => {
        // The intent may be committed.
        if (error instanceof StoreLost) await release(allowed.keyed, issuance, error);
        throw error;
      });
      if (result === 'request-taken') throw new RequestTaken();
      if (result === 'repeated') throw new RequestRepeated();
      refuseUnusable(result, request, 'at the reservation');
      // A queued request took its use earlier.
      if (result === 'reserved') return new Reserved(allowed);
    }
    throw failed('SERIAL_EXHAUSTED', 'The CA could not choose a serial number.');
  }
}

function repeatableOf(keyed: Keyed, { repeats }: Issuance): Repeatable | undefined {
  return tokenOf(keyed.request.identity) === undefined ? undefined : repeats.repeatable(keyed.authorized.recognition);
}

function reservationOf({ keyed, prepared }: Allowed, { instance, now }: Issuance): Reservation {
  const { requestId, ca, identity, operation } = keyed.request;
  const { device_key, required_device } = deviceOf(keyed.request);
  return {
    request_id: requestId,
    instance,
    ...ca.issuedUnder,
    serial: prepared.serial,
    requester: identity.requester,
    operation,
    subject: formatName(keyed.names.subject),
    spki_sha256: spkiHash(keyed.key.publicKey),
    device_key,
    required_device,
    otp_id: tokenOf(identity)?.otp_id ?? null,
    created_at: now(),
    rescued: rescuedRequest(keyed.request, keyed.authorized.recognition),
  };
}

/** The CA has signed, and the key archive, if any, has the key. */
export class Signed {
  readonly reserved: Reserved;
  readonly #issued: Issued;
  readonly archivedKeyId: string | null;

  private constructor(reserved: Reserved, issued: Issued, archivedKeyId: string | null) {
    this.reserved = reserved;
    this.#issued = issued;
    this.archivedKeyId = archivedKeyId;
  }

  get issued(): Issued {
    return this.#issued;
  }

  /** @throws EstuaryError 403, 500 or 503; closes the reservation and returns its OTP use */
  static async of(reserved: Reserved, issuance: Issuance): Promise<Signed> {
    const archivedKeyId = await archive(reserved.keyed, issuance);
    return new Signed(reserved, await sign(reserved, issuance), archivedKeyId);
  }
}

/** With a key archive, nothing is signed and no key leaves before the archive has it. */
async function archive(keyed: Keyed, issuance: Issuance): Promise<string | null> {
  const { request, key } = keyed;
  const { keyArchive } = request.ca.driver;
  if (key.sealed === undefined || keyArchive === undefined) return null;
  const event = { ...eventBase(request), type: 'key.archived' } as const;
  try {
    const id = await keyArchive.archive(key.sealed, request.requestId);
    await issuance.store.audit([{ ...event, outcome: 'success', detail: id }]);
    return id;
  } catch (error) {
    await release(keyed, issuance, error, [{ ...event, outcome: 'failure', detail: describe(error) }]);
    if (error instanceof EstuaryError) throw error;
    throw failed('KEY_ARCHIVAL_FAILED', 'The key could not be archived.', { detail: describe(error), cause: error });
  }
}

async function sign({ keyed, prepared }: Reserved, issuance: Issuance): Promise<Issued> {
  try {
    const result = await measured({ dependency: 'ca', ca: keyed.request.ca.label }, () => prepared.issue());
    if (result.status === 'issued') return result;
    if (result.status === 'rejected') throw forbidden('CA_REJECTED', result.reason);
    // It had said that it would not queue.
    throw queuedGeneratedKey(result.status === 'pending' ? `waits at the CA as ${result.reference}` : result.status);
  } catch (caught) {
    const note = caught instanceof SubmissionUnanswered ? 'possibly issued: ' : '';
    const error =
      caught instanceof EstuaryError
        ? caught
        : failed('CA_SIGNING_FAILED', 'The CA could not sign the certificate.', {
            detail: `${note}${describe(caught)}`,
            cause: caught,
          });
    await release(keyed, issuance, error);
    throw error;
  }
}

/** The certificate is in the store with its audit records, and may now be delivered. */
export class Recorded {
  readonly #outcome: EnrollmentOutcome;

  private constructor(outcome: EnrollmentOutcome) {
    this.#outcome = outcome;
  }

  get outcome(): EnrollmentOutcome {
    return this.#outcome;
  }

  /**
   * @param revocationChallenge its hash. @throws EstuaryError 500 or 503; the certificate is not delivered, its
   * reservation is closed, its OTP use returned
   */
  static async of(signed: Signed, issuance: Issuance, revocationChallenge?: string): Promise<Recorded> {
    const { archivedKeyId, reserved } = signed;
    const { certificate, content } = signed.issued;
    const { keyed } = reserved;
    const { requestId, ca, identity, operation, owner } = keyed.request;
    const of = {
      ...ca.issuedUnder,
      requester: owner ?? identity.display,
      method: identity.method,
      request_id: requestId,
      archived_key_id: archivedKeyId,
      revocation_challenge: revocationChallenge ?? null,
      ...deviceOf(keyed.request),
    };
    const row = certificateRow(certificate, of, content);
    const event = { ...eventBase(keyed.request), ...auditedCertificate(row) };
    try {
      const names = ca.ownIsRecorded ? namesBeyond(certificate, keyed.names) : undefined;
      const events: readonly AuditEvent[] = [
        { ...event, type: 'ca.signature', outcome: 'success' },
        certificateIssued(event, row, operation, names),
      ];
      await issuance.store.recordCertificate(row, events, names);
    } catch (error) {
      await release(keyed, issuance, error);
      throw error;
    }
    noteOnRequest({ serial: row.serial });
    return new Recorded({ status: 'issued', certificate, key: keyed.key.part });
  }
}

/** Closes the reservation without a certificate. */
function release(
  { request }: Keyed,
  { releaser }: Issuance,
  error: unknown,
  causes: readonly AuditEvent[] = [],
): Promise<void> {
  return releaser.release(request.requestId, [...causes, certificateFailed(eventBase(request), describe(error))]);
}
