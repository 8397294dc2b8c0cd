/** Reservations as rows, and what keeps a certificate from being recorded. */
import { type EstuaryError, failed } from '../../errors.ts';
import type { CertificateRow } from '../certificate-store.ts';
import type { Reservation } from '../issuance-store.ts';

export const RESERVATION_COLUMNS =
  'request_id, instance, ca, label, serial, requester, operation, subject, spki_sha256, otp_id, device_key, created_at';

/** What a reservation that is closed was for. */
export type ClosedReservation = Pick<Reservation, 'ca' | 'label' | 'serial' | 'otp_id' | 'device_key' | 'created_at'>;

/** Where it was asked. */
export const labelOf = ({ ca, label }: Pick<Reservation, 'ca' | 'label'>): string => label ?? ca;

type Recorded = Pick<CertificateRow, 'request_id' | 'ca' | 'serial'>;

export const reservationNotOpen = ({ request_id, ca, serial }: Recorded): EstuaryError =>
  failed('RESERVATION_NOT_OPEN', 'the certificate could not be recorded', {
    detail: `no open reservation of request ${request_id} for ${ca} ${serial}`,
  });

export const serialTakenError = ({ ca, serial }: Recorded): EstuaryError =>
  failed('SERIAL_TAKEN', 'the certificate could not be recorded', {
    detail: `${ca} ${serial} is in the store already`,
  });
