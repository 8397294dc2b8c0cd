/**
 * The stage after the authentication: this CA issues to the requester. With `devices = "required"`, the requester must be a registered
 * device (docs/guides/devices.md).
 */
import type { Identity } from '../auth/identity.ts';
import { forbidden } from '../errors.ts';
import { isRecordOf, type IssuedCertificate, type CertificateRow } from '../store/certificate-store.ts';
import { certificateMatchKeys, fitsMatch } from '../store/device-match.ts';
import type { DeviceRow, DeviceStore } from '../store/device-store.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import type { Authenticated } from './authenticated.ts';
import type { NameRight } from './names.ts';
import { deviceNotRegistered, type RequestBase } from './request.ts';

interface Admission {
  readonly store: Pick<DeviceStore, 'findDevices' | 'findDevicesByCertificate'>;
  readonly now: () => number;
}

/** Only this class creates instances, after looking up the requester in the device registry. */
export class Admitted {
  readonly request: RequestBase;
  readonly linking: PopLinking;
  readonly #right: NameRight;

  private constructor({ request, linking, right }: Authenticated, found: Pick<RequestBase, 'device' | 'foundDevice'>) {
    this.request = { ...request, ...found };
    this.linking = linking;
    this.#right = right;
  }

  /** The names that this requester may request. */
  get right(): NameRight {
    return this.#right;
  }

  static async of(authenticated: Authenticated, admission: Admission): Promise<Admitted> {
    const { request, right } = authenticated;
    const requester = { ...request, ...(right.kind === 'secret' && { secret: right.identification }) };
    if (request.ca.config.devices === 'off') {
      const foundDevice = await deviceInHistory(requester, admission.store);
      return new Admitted(authenticated, foundDevice === undefined ? {} : { foundDevice });
    }
    const found = await devicesOf(requester, admission.store, 'required_device');
    return new Admitted(authenticated, { device: theOne(found, admission.now()) });
  }

  /** Only the device that queued a request may poll it. @throws as {@link of} */
  static async toQueued(poll: Authenticated, row: RequestRow, admission: Admission): Promise<Admitted> {
    const { required_device: key } = row;
    if (key === null) return Admitted.of(poll, admission);
    return new Admitted(poll, { device: theOne(await admission.store.findDevices({ key }, row.ca), admission.now()) });
  }
}

/** The device whose history shows a request or its rejection; undefined unless exactly one matches. */
export async function deviceInHistory(requester: Requester, store: Admission['store']): Promise<DeviceRow | undefined> {
  const [device, ...more] = await devicesOf(requester, store, 'device_key');
  return more.length === 0 ? device : undefined;
}

function theOne(found: readonly DeviceRow[], now: number): DeviceRow {
  const [device, ...more] = found;
  if (device === undefined) throw deviceNotRegistered('the requester is not a registered device');
  // A disabled device counts too: another entry must not admit it.
  if (more.length > 0)
    throw forbidden('DEVICE_AMBIGUOUS', 'more than one registered device matches', {
      detail: `the requester matches ${found.map(({ id }) => JSON.stringify(id)).join(', ')}`,
    });
  const { id, enabled, not_after } = device;
  if (!enabled) throw deviceNotRegistered(`device ${JSON.stringify(id)} is disabled`);
  if (not_after !== null && not_after <= now) throw deviceNotRegistered(`device ${JSON.stringify(id)} has expired`);
  return device;
}

export interface Requester extends Pick<RequestBase, 'ca' | 'identity'> {
  /** Identification of the shared secret that authenticated a CMC message. */
  readonly secret?: string | undefined;
}

type DeviceColumn = keyof Pick<CertificateRow, 'device_key' | 'required_device'>;

async function devicesOf(
  { ca, identity, secret }: Requester,
  store: Admission['store'],
  column: DeviceColumn,
): Promise<readonly DeviceRow[]> {
  const name = secret ?? nameOf(identity);
  if (name !== undefined) return store.findDevices({ id: name }, ca.label);
  if (!('certificate' in identity) || identity.certificate === undefined) return [];
  const { certificate, issuer } = identity;
  return byCertificate({ certificate, issuer }, ca.label, store, column);
}

function nameOf(identity: Identity): string | undefined {
  if ('client_id' in identity) return identity.client_id;
  return identity.method === 'gssapi' ? identity.principal : undefined;
}

/** A certificate belongs to the device that it was recorded with, even if another device has that ID now. */
async function byCertificate(
  presented: IssuedCertificate,
  ca: string,
  store: Admission['store'],
  column: DeviceColumn,
): Promise<readonly DeviceRow[]> {
  const { serialNumber } = presented.certificate;
  const { recorded, matching } = await store.findDevicesByCertificate(
    serialNumber,
    certificateMatchKeys(presented),
    ca,
  );
  for (const { [column]: key, der } of recorded)
    if (key !== null && (await isRecordOf({ der }, presented))) return store.findDevices({ key }, ca);
  return matching.filter(({ match }) => match !== null && fitsMatch(match, presented));
}
