/**
 * The stage after the authentication: the requester is one that this CA issues to. With `devices = "required"` that is a registered
 * device (docs/devices.md).
 */
import type { Identity } from '../auth/identity.ts';
import { EstuaryError } from '../errors.ts';
import { isRecordOf, type IssuedCertificate } from '../store/certificate-issuer.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import { certificateMatchKeys, fitsMatch } from '../store/device-match.ts';
import type { DeviceRow, DeviceStore } from '../store/device-store.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import type { Authenticated } from './authenticated.ts';
import type { NameRight } from './names.ts';
import type { RequestBase, RequestDevice } from './request.ts';

export interface Admission {
  readonly store: Pick<CertificateStore & DeviceStore, 'getCertificates' | 'findDevices'>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** 403: the requester is no device that may have a certificate; names the device, where it is one. */
export class DeviceRefused extends EstuaryError {
  readonly device: RequestDevice | undefined;

  constructor(code: 'DEVICE_NOT_REGISTERED' | 'DEVICE_AMBIGUOUS', message: string, detail: string, device?: DeviceRow) {
    super(403, code, message, { detail });
    this.device = device;
  }
}

/** Made where a requester was looked up among the devices, or none is asked for, and nowhere else. */
export class Admitted {
  readonly request: RequestBase;
  readonly linking: PopLinking;
  readonly #right: NameRight;

  private constructor({ request, linking, right }: Authenticated, device: DeviceRow | undefined) {
    this.request = device === undefined ? request : { ...request, device };
    this.linking = linking;
    this.#right = right;
  }

  /** Which names this requester may ask for. */
  get right(): NameRight {
    return this.#right;
  }

  /** @throws EstuaryError 403 `DEVICE_NOT_REGISTERED`, `DEVICE_AMBIGUOUS` */
  static async of(authenticated: Authenticated, admission: Admission): Promise<Admitted> {
    const { ca } = authenticated.request;
    if (ca.config.devices === 'off') return new Admitted(authenticated, undefined);
    return new Admitted(authenticated, theOne(await devicesOf(authenticated, admission.store), admission.now()));
  }

  /** Of whoever asks for a request that was queued: it is for the device that it was queued for. @throws as {@link of} */
  static async toQueued(poll: Authenticated, row: RequestRow, admission: Admission): Promise<Admitted> {
    if (row.device_key === null) return Admitted.of(poll, admission);
    const found = await admission.store.findDevices({ key: row.device_key }, row.ca);
    return new Admitted(poll, theOne(found, admission.now()));
  }
}

function theOne(found: readonly DeviceRow[], now: number): DeviceRow {
  const [device, ...more] = found;
  if (device === undefined) throw notRegistered('the requester is no device');
  // Which one it is nobody can say, enabled or not: another entry never makes up for one that is disabled.
  if (more.length > 0)
    throw new DeviceRefused(
      'DEVICE_AMBIGUOUS',
      'more than one registered device matches',
      `the requester matches ${found.map(({ id }) => JSON.stringify(id)).join(', ')}`,
    );
  const { id, enabled, not_after } = device;
  if (!enabled) throw notRegistered(`device ${JSON.stringify(id)} is disabled`, device);
  if (not_after !== null && not_after <= now) throw notRegistered(`device ${JSON.stringify(id)} has expired`, device);
  return device;
}

function notRegistered(detail: string, device?: DeviceRow): DeviceRefused {
  return new DeviceRefused('DEVICE_NOT_REGISTERED', 'device not registered', detail, device);
}

/** The devices that a requester may be: of a password, a secret or a principal by its name, of a certificate by what it is. */
async function devicesOf(
  { request: { ca, identity }, right }: Authenticated,
  store: Admission['store'],
): Promise<readonly DeviceRow[]> {
  if (right.kind === 'secret') return store.findDevices({ id: right.identification }, ca.label);
  const name = nameOf(identity);
  if (name !== undefined) return store.findDevices({ id: name }, ca.label);
  if (!('certificate' in identity) || identity.certificate === undefined) return [];
  const { certificate, issuer } = identity;
  return byCertificate({ certificate, issuer }, ca.label, store);
}

function nameOf(identity: Identity): string | undefined {
  if (identity.method === 'otp') return identity.client_id;
  return identity.method === 'gssapi' ? identity.principal : undefined;
}

/** A certificate that was recorded with a device stays that device's, even if another device has its id now. */
async function byCertificate(
  presented: IssuedCertificate,
  ca: string,
  store: Admission['store'],
): Promise<readonly DeviceRow[]> {
  const { certificate } = presented;
  for (const row of await store.getCertificates(certificate.serialNumber))
    if (row.device_key !== null && (await isRecordOf(row, presented)))
      return store.findDevices({ key: row.device_key }, ca);
  const found = await store.findDevices({ match_keys: certificateMatchKeys(presented) }, ca);
  return found.filter(({ match }) => match !== null && fitsMatch(match, presented));
}
