import type { AuditEvent } from '../audit/event.ts';
import type { CertificateRow, CertificateSelection } from './certificate-store.ts';
import { fold } from './page.ts';

/** A replacement campaign: the matching certificates are to be replaced between `begins` and `due`. */
export interface RenewalRow {
  readonly id: string;
  readonly selection: CertificateSelection;
  readonly begins: number;
  readonly due: number;
  readonly created_by: string;
  readonly reason: string | null;
  readonly explanation_url: string | null;
  /** When it was reported that certificates are overdue; null: not yet. */
  readonly overdue_at: number | null;
}

/** A certificate, with the time of its issuance. */
export type IssuedCertificate = CertificateRow & { readonly issued_at: number };

export interface RenewalStore {
  /** Running campaigns, in the order of their start. */
  listRenewals(): Promise<readonly RenewalRow[]>;
  /** One certificate, for its renewal information. */
  findIssued(ca: string, serial: string): Promise<IssuedCertificate | undefined>;
  startRenewal(row: RenewalRow, events: readonly AuditEvent[]): Promise<void>;
  /** `false`: there is no such campaign. */
  endRenewal(id: string, events: readonly AuditEvent[]): Promise<boolean>;
  /** Records that overdue certificates were reported, once. */
  noteOverdue(id: string, now: number, events: readonly AuditEvent[]): Promise<boolean>;
}

const SAME = ['ca', 'label', 'serial', 'requester', 'device', 'device_key'] as const;

/** Whether a campaign replaces a certificate. Later certificates of the same holder are its replacements. */
export function replaces({ selection, begins }: RenewalRow, row: IssuedCertificate): boolean {
  const { subject, san, issued_after, expires_before, labels } = selection;
  return (
    row.issued_at <= begins &&
    (labels === undefined || labels.includes(row.label ?? row.ca)) &&
    SAME.every((name) => selection[name] === undefined || row[name] === selection[name]) &&
    (subject === undefined || fold(row.subject).includes(fold(subject))) &&
    (san === undefined || row.sans.some((one) => fold(one).includes(fold(san)))) &&
    (issued_after === undefined || row.issued_at > issued_after) &&
    (expires_before === undefined || row.not_after < expires_before)
  );
}
