import type { AuditEvent, AuditRecord } from '../audit/event.ts';
import type { CertificateRow } from './certificate-store.ts';
import type { OtpRow } from './otp-store.ts';
import type { Page, PageRequest } from './page.ts';
import type { RequestRow } from './request-store.ts';

/** Which foreign certificate is a device's: all that is given holds. An issuer or a fingerprint is. */
export interface DeviceMatch {
  /** RFC 4514. */
  readonly issuer?: string;
  /** The subject's attribute. */
  readonly serial_number?: string;
  /** The subject's attribute. */
  readonly common_name?: string;
  /** As in {@link CertificateRow}: one of its names. */
  readonly san?: string;
  /** Lower-case hex. */
  readonly fingerprint_sha256?: string;
}

export interface DeviceRow {
  /** Of this entry alone: a later device of the same id has another one. */
  readonly key: string;
  readonly id: string;
  /** The label that the device is limited to, or null. */
  readonly ca: string | null;
  readonly enabled: boolean;
  readonly not_after: number | null;
  readonly note: string | null;
  readonly match: DeviceMatch | null;
  /** What {@link match} is found by (device-match.ts); null without one. */
  readonly match_key: string | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly created_at: number;
  readonly changed_at: number;
}

/** What an administrator may change. */
export type DeviceChange = Partial<
  Pick<DeviceRow, 'ca' | 'enabled' | 'not_after' | 'note' | 'match' | 'match_key' | 'attributes'>
>;

export interface DeviceSelection {
  readonly id?: string | undefined;
  readonly ca?: string | undefined;
  readonly enabled?: boolean | undefined;
}

export interface DeviceFilter extends DeviceSelection, PageRequest {}

/** A device to enter; its event is `device.created`, which becomes `device.changed` where it replaces one. */
export interface DeviceEntry {
  readonly row: DeviceRow;
  readonly events: readonly AuditEvent[];
}

/** `known`: there is a device with this id, and nothing changed. */
export type EntryResult = 'created' | 'replaced' | 'known';

/** What is known of a device, the newest of each kind first. */
export interface DeviceHistory {
  readonly certificates: readonly CertificateRow[];
  /** Those made for its id. */
  readonly tokens: readonly OtpRow[];
  readonly requests: readonly RequestRow[];
  readonly events: readonly AuditRecord[];
}

/** How to find the device that a requester is: by its key, else by its id or by what its certificate matches. */
export type DeviceQuery =
  { readonly key: string } | { readonly id: string } | { readonly match_keys: readonly string[] };

/**
 * The devices that are registered. Certificates, requests and reservations carry the key of their device: whether it is enabled, has not
 * expired and may come to the CA is looked at again, in their transaction, when a request is queued, approved, reserved and recorded.
 */
export interface DeviceStore {
  /** Enters devices, each for itself. @param mode `upsert`: a known id is replaced, and stays the same device */
  putDevices(entries: readonly DeviceEntry[], mode: 'create' | 'upsert'): Promise<readonly EntryResult[]>;
  getDevice(id: string): Promise<DeviceRow | undefined>;
  /** In the order in which they were entered, oldest first unless told. */
  listDevices(filter: DeviceFilter): Promise<Page<DeviceRow>>;
  /** The names of the attributes that any of them has, sorted. */
  listDeviceAttributes(selection: DeviceSelection): Promise<readonly string[]>;
  /** The device as it is then; undefined: there is none with this id. */
  changeDevice(
    id: string,
    change: DeviceChange,
    now: number,
    events: readonly AuditEvent[],
  ): Promise<DeviceRow | undefined>;
  /** Forgets a device. Its certificates, requests and tokens stay, and are nobody's. `false`: there is none with this key. */
  deleteDevice(key: string, events: readonly AuditEvent[]): Promise<boolean>;
  /** The devices that a requester may be, enabled or not, of those that may come to this CA: at most a few. */
  findDevices(query: DeviceQuery, ca: string): Promise<readonly DeviceRow[]>;
  /** @param limit of each kind */
  deviceHistory(device: Pick<DeviceRow, 'id' | 'key'>, limit: number): Promise<DeviceHistory>;
  /** Commits events that tell of a device and belong to no other change. */
  auditDevice(key: string, events: readonly AuditEvent[]): Promise<void>;
}
