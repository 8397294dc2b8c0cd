import type { AuditEvent } from '../audit/event.ts';
import type { CertificateRow } from './certificate-store.ts';
import type { Repeatable } from './otp-store.ts';

/** The intent to issue, committed before the CA signs. */
export interface Reservation {
  readonly request_id: string;
  /** The process that is at work on it: only a dead one's reservations may be reconciled. */
  readonly instance: string;
  /** The CA whose key signs, by its label. */
  readonly ca: string;
  /** The label that it was asked at, where that is another than the CA's own. */
  readonly label: string | null;
  /** null where the CA chooses the serial (a remote PKI). */
  readonly serial: string | null;
  readonly requester: string;
  readonly operation: string;
  readonly subject: string;
  /** Hex SHA-256 of the requested SubjectPublicKeyInfo; null where the key does not exist yet. */
  readonly spki_sha256: string | null;
  /** The OTP of which one use is taken, in the same transaction. */
  readonly otp_id: string | null;
  /** The key of the requester's device. */
  readonly device_key: string | null;
  /** `device_key`, if the label issues to registered devices only: it must be enabled until the certificate is recorded. */
  readonly required_device: string | null;
  readonly created_at: number;
}

/**
 * `repeated`: a use of the same token was taken for the same request, see {@link Repeatable}; `device-refused`: the device is disabled,
 * expired, gone, or may not come to this CA.
 */
export type ReserveResult = 'reserved' | 'otp-unusable' | 'serial-taken' | 'device-refused' | 'repeated';

/** `reserved`, or why not; `request-taken`: it is not approved (any more), or its issuance is under way. */
export type ClaimResult = 'reserved' | 'request-taken' | 'serial-taken' | 'device-refused';

/** Issuance in two steps: the intent before the CA signs, the certificate after. */
export interface IssuanceStore {
  /**
   * Takes the OTP use (if any) and commits the intent. An OTP is usable when it is not revoked, has not expired at
   * `created_at` and has a use left. Anything but `reserved` changed nothing and committed none of the events.
   *
   * @param repeatable of a request that takes a use: while the same one is under way, or within its window, it is `repeated`
   */
  reserve(reservation: Reservation, events: readonly AuditEvent[], repeatable?: Repeatable): Promise<ReserveResult>;
  /**
   * Stores the certificate and closes the reservation of its `request_id`.
   *
   * @throws {EstuaryError} 500 `RESERVATION_NOT_OPEN` when there is none (it was released, or recorded already), or
   *   it is for another CA or serial; 500 `SERIAL_TAKEN` when the CA has a certificate of this serial; 403 `DEVICE_NOT_REGISTERED` when the
   *   reservation's device was disabled meanwhile
   * @param succeeded the lockout keys to clear
   */
  recordCertificate(row: CertificateRow, events: readonly AuditEvent[], succeeded?: readonly string[]): Promise<void>;
  /**
   * Closes a reservation without a certificate and gives the OTP use back, exactly once. `false`: it was not open;
   * nothing changed and none of the events was committed.
   */
  releaseReservation(request_id: string, events: readonly AuditEvent[]): Promise<boolean>;
  /**
   * {@link reserve} for a queued request: the reservation has its id, and takes no OTP use, because the request holds
   * one. At most one is open for a request, on all nodes; recording its certificate makes the request `issued`.
   */
  claimRequest(reservation: Reservation, events: readonly AuditEvent[]): Promise<ClaimResult>;
  /** Reservations neither recorded nor released: of one instance, or of all. Oldest first. */
  openReservations(instance?: string): Promise<readonly Reservation[]>;
}
