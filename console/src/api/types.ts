/** Short names for the generated types of the admin API. */
import type { components } from '../../../api/admin.d.ts';

type Schemas = components['schemas'];

export type Session = Schemas['Session'];
export type Service = Schemas['Service'];
export type Role = Session['roles'][number];
export type Token = Schemas['Token'];
export type CreatedToken = Schemas['CreatedToken'];
export type Certificate = Schemas['Certificate'];
export type CertificatePage = Schemas['CertificateDetails'];
export type QueuedRequest = Schemas['Request'];
export type RequestPage = Schemas['RequestDetails'];
export type Verdict = Schemas['CheckAnswer'];
export type RequestVerdictRecord = Schemas['RequestCheck'];
export type CertificateContent = Schemas['CertificateContent'];
export type CertificateChain = Schemas['CertificateChain'];
export type CaRevocation = Schemas['CaRevocation'];
export type HistoryRecord = Schemas['History'];
export type Holder = Schemas['Holder'];
export type FleetSummary = Schemas['FleetSummary'];
export type Device = Schemas['ListedDevice'];
export type DevicePage = Schemas['DeviceDetails'];
export type AuditRecord = Schemas['AuditRecord'];
export type Ca = Schemas['Ca'];
export type CaPage = Schemas['CaDetails'];
export type Campaign = Schemas['Renewal'];
export type CampaignProgress = Schemas['RenewalProgress'];
export type Receiver = Schemas['NotificationReceiver'];
export type Lockout = Schemas['Lockout'];
export type ReloadReport = Schemas['ReloadReport'];
export type OverviewRecord = Schemas['Overview'];
export type Statistics = Schemas['Statistics'];
export type Configuration = Schemas['Configuration'];
export type ConfigurationKey = Schemas['ConfigurationKey'];

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
  /** Of all pages. */
  readonly total?: { readonly count: number; readonly exact: boolean } | undefined;
}
