import type { AuditEvent } from '../audit/event.ts';
import type { CertificateRow } from './certificate-store.ts';
import type { Repeatable } from './otp-store.ts';

/** The intent to issue, committed before the CA signs. */
export interface Reservation {
  readonly request_id: string;
  /** The process that is working on it: only a dead process's reservations may be reconciled. */
  readonly instance: string;
  /** Label of the CA whose key signs. */
  readonly ca: string;
  /** The label of the request, if it is not the CA's own. */
  readonly label: string | null;
  /** null if the CA chooses the serial number (a remote PKI). */
  readonly serial: string | null;
  readonly requester: string;
  readonly operation: string;
  readonly subject: string;
  /** Hex SHA-256 of the requested SubjectPublicKeyInfo; null if the key does not exist yet. */
  readonly spki_sha256: string | null;
  /** The OTP of which one use is taken, in the same transaction. */
  readonly otp_id: string | null;
  readonly device_key: string | null;
  /**
   * `device_key`, if the label issues only to registered devices: it must be enabled until the certificate is recorded.
   */
  readonly required_device: string | null;
  readonly created_at: number;
}

/**
 * `repeated`: the same request has taken a use of the token, see {@link Repeatable}; `device-refused`: the device is
 * disabled, expired, deleted, or not admitted to this CA.
 */
export type ReserveResult = 'reserved' | 'otp-unusable' | 'serial-taken' | 'device-refused' | 'repeated';

/** `reserved`, or why not; `request-taken`: it is not approved (any more), or its issuance is in progress. */
export type ClaimResult = 'reserved' | 'request-taken' | 'serial-taken' | 'device-refused';

/** Two-phase issuance: the intent before the CA signs, the certificate after. */
export interface IssuanceStore {
  /**
   * Takes the OTP use (if any) and commits the intent. An OTP is usable if it is not revoked, not expired at
   * `created_at`, and has a use left. Any result except `reserved` means that nothing changed and no event was
   * committed.
   * @param repeatable of a request that takes a use: a repeat while it is in progress, or within its window, is
   * `repeated`
   */
  reserve(reservation: Reservation, events: readonly AuditEvent[], repeatable?: Repeatable): Promise<ReserveResult>;
  /**
   * Stores the certificate and closes the reservation of its `request_id`.
   * @throws {EstuaryError} 500 `RESERVATION_NOT_OPEN` if it is released, already recorded, or for another CA or serial;
   * 500 `SERIAL_TAKEN` if the CA has a certificate with this serial; 403 `DEVICE_NOT_REGISTERED` if the reservation's
   * device was disabled meanwhile
   * @param succeeded the lockout keys to clear
   */
  recordCertificate(row: CertificateRow, events: readonly AuditEvent[], succeeded?: readonly string[]): Promise<void>;
  /**
   * Closes a reservation without a certificate and returns the OTP use, exactly once. `false`: it was not open; nothing
   * changed and no event was committed.
   */
  releaseReservation(request_id: string, events: readonly AuditEvent[]): Promise<boolean>;
  /**
   * {@link reserve} for a queued request: the reservation has its ID and takes no OTP use, because the request holds
   * one. At most one is open per request across nodes; recording its certificate makes the request `issued`.
   */
  claimRequest(reservation: Reservation, events: readonly AuditEvent[]): Promise<ClaimResult>;
  /** Open reservations of one instance, or of all; oldest first. */
  openReservations(instance?: string): Promise<readonly Reservation[]>;
}
