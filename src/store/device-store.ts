import { type AuditEvent, type AuditRecord, REQUESTER_AUTHENTICATION } from '../audit/event.ts';
import type { CertificateRow } from './certificate-store.ts';
import type { OtpRow } from './otp-store.ts';
import type { Page, PageRequest } from './page.ts';
import type { RequestRow } from './request-store.ts';

/**
 * Identifies a device's foreign certificate. All given fields must match; `issuer_spki_sha256` or `fingerprint_sha256`
 * is always given.
 */
export interface DeviceMatch {
  /** Hex SHA-256 of the SubjectPublicKeyInfo of the issuer in the validated path. */
  readonly issuer_spki_sha256?: string;
  /** The subject's attribute. */
  readonly serial_number?: string;
  /** The subject's attribute. */
  readonly common_name?: string;
  /** One of its names, as in {@link CertificateRow}. */
  readonly san?: string;
  /** Hex, of the certificate or its ECDSA variant. */
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
  /** Unique per entry: a later device with the same ID has another key. */
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

/** Fields that an administrator may change. */
export type DeviceChange = Partial<Pick<DeviceRow, 'ca' | 'enabled' | 'not_after' | 'note' | 'match' | 'attributes'>>;

export interface DeviceSelection {
  readonly id?: string | undefined;
  readonly ca?: string | undefined;
  readonly enabled?: boolean | undefined;
  /** A part of the ID, the note or a value of `match`, ignoring case. */
  readonly search?: string | undefined;
  /** Only rows of these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface DeviceFilter extends DeviceSelection, PageRequest {}

/**
 * A device to add; its event is `device.created`, which becomes `device.changed` if an upsert changes an existing
 * device.
 */
export interface DeviceEntry {
  readonly row: DeviceRow;
  /** The given fields, which an upsert changes in an existing device. Absent: none. */
  readonly change?: DeviceChange;
  /**
   * An upsert keeps fields of `match` and `attributes` that `change` does not name. Otherwise it replaces both as a
   * whole.
   */
  readonly merges?: boolean;
  readonly events: readonly AuditEvent[];
}

/** `known`: a device with this ID exists, and nothing changed. */
export type EntryResult = 'created' | 'changed' | 'known';

/** A device's history, newest first in each list. */
export interface DeviceHistory {
  readonly certificates: readonly CertificateRow[];
  /** Created for its ID. */
  readonly tokens: readonly OtpRow[];
  readonly requests: readonly RequestRow[];
  readonly events: readonly AuditRecord[];
}

export interface DeviceClaim {
  /** The device's ID. */
  readonly name: string | null;
  /** Serial number of the device's certificate. */
  readonly serial: string | null;
  /** The label of the request. */
  readonly ca: string | null;
}

/** The claim in a failed authentication or a lockout: the store links the record to the device on commit. */
export function deviceClaim({ type, outcome, subject, serial, ca }: AuditEvent): DeviceClaim | undefined {
  const isFailure = outcome === 'failure' && REQUESTER_AUTHENTICATION.includes(type);
  if (!isFailure && type !== 'lockout.started') return undefined;
  // The subject of a certificate is not an ID.
  const name = type === 'auth.mtls' ? undefined : subject;
  if (name === undefined && serial === undefined) return undefined;
  return { name: name ?? null, serial: serial ?? null, ca: ca ?? null };
}

/** Finds a requester's device: by key, by ID, or by its certificate. */
export type DeviceQuery = { readonly key: string } | { readonly id: string };

export interface DevicesByCertificate {
  /** The records of devices' certificates with its serial number, of any issuer. */
  readonly recorded: readonly Pick<CertificateRow, 'der' | 'device_key' | 'required_device'>[];
  /** Those whose match has one of the keys, with the limits of {@link DeviceStore.findDevices}. */
  readonly matching: readonly DeviceRow[];
}

/**
 * The registered devices. Certificates, requests and reservations carry the key of their device. Queuing, approving,
 * reserving and recording check in their transaction that the device is enabled, not expired, and admitted to the CA.
 */
export interface DeviceStore {
  /**
   * Adds devices independently of each other.
   * @param mode `upsert`: changes the given fields of an existing device
   * @param labels an upsert changes only devices of these labels; others are `known`
   */
  putDevices(
    entries: readonly DeviceEntry[],
    mode: 'create' | 'upsert',
    labels?: readonly string[],
  ): Promise<readonly EntryResult[]>;
  getDevice(id: string): Promise<DeviceRow | undefined>;
  /** In insertion order, oldest first by default. */
  listDevices(filter: DeviceFilter): Promise<Page<DeviceRow>>;
  /** Names of all devices' attributes, sorted. */
  listDeviceAttributes(selection: DeviceSelection): Promise<readonly string[]>;
  /** The changed device; undefined: no device of these labels has this ID. @param labels default: any */
  changeDevice(
    id: string,
    change: DeviceChange,
    now: number,
    events: readonly AuditEvent[],
    labels?: readonly string[],
  ): Promise<DeviceRow | undefined>;
  /** Deletes a device. Its certificates, requests and tokens stay without a device. `false`: unknown key. */
  deleteDevice(key: string, events: readonly AuditEvent[]): Promise<boolean>;
  /** The devices that a requester may be, enabled or not, among those admitted to this CA: at most a few. */
  findDevices(query: DeviceQuery, ca: string): Promise<readonly DeviceRow[]>;
  /** What says which device a certificate belongs to. @param match_keys its {@link certificateMatchKeys} */
  findDevicesByCertificate(serial: string, match_keys: readonly string[], ca: string): Promise<DevicesByCertificate>;
  /** @param limit per list */
  deviceHistory(device: Pick<DeviceRow, 'id' | 'key'>, limit: number): Promise<DeviceHistory>;
  /** Commits events that concern a device and belong to no other change. */
  auditDevice(key: string, events: readonly AuditEvent[]): Promise<void>;
}
