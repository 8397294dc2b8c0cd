import { type AuditEvent, type AuditRecord, REQUESTER_AUTHENTICATION } from '../audit/event.ts';
import type { CertificateRow } from './certificate-store.ts';
import type { OtpRow } from './otp-store.ts';
import type { Page, PageRequest } from './page.ts';
import type { RequestRow } from './request-store.ts';

/**
 * What identifies a device's foreign certificate. All given fields must match; `issuer_spki_sha256` or `fingerprint_sha256` is
 * always given.
 */
export interface DeviceMatch {
  /** Lower-case hex SHA-256 of the SubjectPublicKeyInfo of the issuer in the validated path. */
  readonly issuer_spki_sha256?: string;
  /** The subject's attribute. */
  readonly serial_number?: string;
  /** The subject's attribute. */
  readonly common_name?: string;
  /** As in {@link CertificateRow}: one of its names. */
  readonly san?: string;
  /** Lower-case hex; of the certificate or its ECDSA twin. */
  readonly fingerprint_sha256?: string;
}

export const MATCH_FIELDS = [
  'issuer_spki_sha256',
  'serial_number',
  'common_name',
  'san',
  'fingerprint_sha256',
] as const satisfies readonly (keyof DeviceMatch)[];

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
  readonly attributes: Readonly<Record<string, string>>;
  readonly created_at: number;
  readonly changed_at: number;
}

/** What an administrator may change. */
export type DeviceChange = Partial<Pick<DeviceRow, 'ca' | 'enabled' | 'not_after' | 'note' | 'match' | 'attributes'>>;

export interface DeviceSelection {
  readonly id?: string | undefined;
  readonly ca?: string | undefined;
  readonly enabled?: boolean | undefined;
  /** Rows of these labels only. */
  readonly labels?: readonly string[] | undefined;
}

export interface DeviceFilter extends DeviceSelection, PageRequest {}

/** A device to enter; its event is `device.created`, which becomes `device.changed` if an upsert changes a known device. */
export interface DeviceEntry {
  readonly row: DeviceRow;
  /** The given fields: all that an upsert changes of a known device. Absent: none. */
  readonly change?: DeviceChange;
  /** An upsert keeps the fields of `match` and `attributes` that `change` does not name. Otherwise it replaces both as a whole. */
  readonly merges?: boolean;
  readonly events: readonly AuditEvent[];
}

/** `known`: a device with this id exists, and nothing changed. */
export type EntryResult = 'created' | 'changed' | 'known';

/** What is known of a device, the newest of each kind first. */
export interface DeviceHistory {
  readonly certificates: readonly CertificateRow[];
  /** Those made for its id. */
  readonly tokens: readonly OtpRow[];
  readonly requests: readonly RequestRow[];
  readonly events: readonly AuditRecord[];
}

/** Whose device an event is about, as a requester claimed that nobody authenticated. */
export interface DeviceClaim {
  /** The ID of the device. */
  readonly name: string | null;
  /** The serial number of a certificate of the device. */
  readonly serial: string | null;
  /** The label of the request. */
  readonly ca: string | null;
}

/** The claim of a failed authentication or a lockout: the store links its record to the device when it commits the record. */
export function deviceClaim({ type, outcome, subject, serial, ca }: AuditEvent): DeviceClaim | undefined {
  const isFailure = outcome === 'failure' && REQUESTER_AUTHENTICATION.includes(type);
  if (!isFailure && type !== 'lockout.started') return undefined;
  // The subject of a certificate is not an ID.
  const name = type === 'auth.mtls' ? undefined : subject;
  if (name === undefined && serial === undefined) return undefined;
  return { name: name ?? null, serial: serial ?? null, ca: ca ?? null };
}

/** How to find the device that a requester is: by its key, else by its id or by what its certificate matches. */
export type DeviceQuery = { readonly key: string } | { readonly id: string };

export interface DevicesByCertificate {
  /** The records of devices' certificates with its serial number, of any issuer. */
  readonly recorded: readonly Pick<CertificateRow, 'der' | 'device_key' | 'required_device'>[];
  /** Those whose match has one of the keys, with the limits of {@link DeviceStore.findDevices}. */
  readonly matching: readonly DeviceRow[];
}

/**
 * The devices that are registered. Certificates, requests and reservations carry the key of their device: whether it is enabled, has not
 * expired and may come to the CA is looked at again, in their transaction, when a request is queued, approved, reserved and recorded.
 */
export interface DeviceStore {
  /**
   * Enters devices independently of each other.
   *
   * @param mode `upsert`: changes the given fields of a known device
   * @param labels an upsert changes only devices of these labels; others are `known`
   */
  putDevices(
    entries: readonly DeviceEntry[],
    mode: 'create' | 'upsert',
    labels?: readonly string[],
  ): Promise<readonly EntryResult[]>;
  getDevice(id: string): Promise<DeviceRow | undefined>;
  /** In the order in which they were entered, oldest first unless told. */
  listDevices(filter: DeviceFilter): Promise<Page<DeviceRow>>;
  /** The names of the attributes that any of them has, sorted. */
  listDeviceAttributes(selection: DeviceSelection): Promise<readonly string[]>;
  /** The device as it is then; undefined: no device of these labels has this id. @param labels absent: any */
  changeDevice(
    id: string,
    change: DeviceChange,
    now: number,
    events: readonly AuditEvent[],
    labels?: readonly string[],
  ): Promise<DeviceRow | undefined>;
  /** Forgets a device. Its certificates, requests and tokens stay, and are nobody's. `false`: there is none with this key. */
  deleteDevice(key: string, events: readonly AuditEvent[]): Promise<boolean>;
  /** The devices that a requester may be, enabled or not, of those that may come to this CA: at most a few. */
  findDevices(query: DeviceQuery, ca: string): Promise<readonly DeviceRow[]>;
  /** What says which device a certificate belongs to. @param match_keys its {@link certificateMatchKeys} */
  findDevicesByCertificate(serial: string, match_keys: readonly string[], ca: string): Promise<DevicesByCertificate>;
  /** @param limit of each kind */
  deviceHistory(device: Pick<DeviceRow, 'id' | 'key'>, limit: number): Promise<DeviceHistory>;
  /** Commits events that tell of a device and belong to no other change. */
  auditDevice(key: string, events: readonly AuditEvent[]): Promise<void>;
}
