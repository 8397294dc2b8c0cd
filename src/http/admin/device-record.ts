/** Devices as the admin API shows and takes them (contract §8.5). */
import { randomUUID } from 'node:crypto';
import { Type, type Static } from '@fastify/type-provider-typebox';
import { badRequest } from '../../errors.ts';
import { InputError } from '../../pki/input-error.ts';
import { parseDistinguishedName } from '../../pki/x509/name.ts';
import { deviceMatchKey, isSan } from '../../store/device-match.ts';
import type { DeviceChange, DeviceMatch, DeviceRow } from '../../store/device-store.ts';
import type { Columns } from './bulk/columns.ts';
import type { AdminDependencies } from './dependencies.ts';
import { nullable, strictObject, Timestamp } from './schemas.ts';
import { formatOptionalTimestamp, formatTimestamp, parseTimestamp } from './timestamps.ts';
import { validator } from './validation.ts';

const MAX_ATTRIBUTES = 64;
const ATTRIBUTE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

const text = (description: string, maxLength = 1024) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const Match = strictObject(
  {
    issuer: text("The certificate's issuer, RFC 4514."),
    serial_number: text('The attribute serialNumber of its subject.'),
    common_name: text('The attribute CN of its subject.'),
    san: text('One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`.'),
    fingerprint_sha256: text('Of the certificate, hex.', 95),
  },
  {
    description: 'Which foreign certificate is this device’s: all that is given holds; an issuer or a fingerprint is.',
  },
);

const Attributes = Type.Record(Type.String(), Type.String({ maxLength: 1024 }), {
  description: 'Texts by name, for the names in its certificates.',
});

const changeable = {
  ca: Type.Optional(nullable(Type.String({ description: 'A label: the device is one for that CA only.' }))),
  match: Type.Optional(nullable(Match)),
  attributes: Type.Optional(Attributes),
  enabled: Type.Optional(Type.Boolean({ description: 'true when absent.' })),
  not_after: Type.Optional(nullable(Timestamp('In the future: from then on it is no device any more.'))),
  note: Type.Optional(nullable(Type.String({ maxLength: 2000 }))),
};

const DeviceIdText = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Whom a token is made for (client_id), or a principal; no control characters.',
});

export const NewDevice = strictObject(
  { id: DeviceIdText, ...changeable },
  { title: 'NewDevice', description: 'The device to register.' },
);
export const ChangedDevice = strictObject(changeable, {
  title: 'ChangedDevice',
  description: 'What is to change; what is absent stays.',
});

const recordProperties = {
  id: Type.String(),
  ca: nullable(Type.String({ description: 'The label that the device is limited to.' })),
  match: nullable(Match),
  attributes: Attributes,
  enabled: Type.Boolean(),
  not_after: nullable(Timestamp()),
  note: nullable(Type.String()),
  created_at: Timestamp(),
  changed_at: Timestamp(),
};

export const DeviceRecord = Type.Object(recordProperties, { title: 'Device', description: 'A registered device.' });
export const deviceProperties = recordProperties;

export const MATCH_FIELDS = ['issuer', 'serial_number', 'common_name', 'san', 'fingerprint_sha256'] as const;

const MATCH_COLUMNS = Object.fromEntries(MATCH_FIELDS.map((name) => [`match.${name}`, 'text' as const]));

/** The columns of CSV: `id ca enabled not_after note`, `match.NAME`, `attributes.NAME`. */
export const DEVICE_COLUMNS: Columns = {
  named: { id: 'text', ca: 'text', enabled: 'boolean', not_after: 'text', note: 'text', ...MATCH_COLUMNS },
  prefixes: ['attributes.'],
};

/** The header of a table of devices with these attributes. */
export const deviceHeader = (attributes: readonly string[]): string[] => [
  ...Object.keys(DEVICE_COLUMNS.named),
  ...attributes.map((name) => `attributes.${name}`),
];

const checkNew = validator(NewDevice);

/** A device to enter. @throws EstuaryError 400 `FIELD_INVALID` that names the field */
export function readDevice(body: unknown, context: Pick<AdminDependencies, 'cas' | 'now'>): DeviceRow {
  const device = checkNew(body);
  const { id } = device;
  if (/\p{Cc}/u.test(id) || id.trim() === '')
    throw badRequest('FIELD_INVALID', 'id must not be blank or hold control characters');
  const now = context.now();
  return {
    key: randomUUID(),
    id,
    ca: null,
    enabled: true,
    not_after: null,
    note: null,
    match: null,
    match_key: null,
    attributes: {},
    created_at: now,
    changed_at: now,
    ...readChange(device, context),
  };
}

/** What is to be different. @throws EstuaryError 400 `FIELD_INVALID` that names the field */
export function readChange(
  { ca, match, attributes, enabled, not_after, note }: Static<typeof ChangedDevice>,
  { cas, now }: Pick<AdminDependencies, 'cas' | 'now'>,
): DeviceChange {
  if (typeof ca === 'string' && !cas.all.some(({ label }) => label === ca))
    throw badRequest('FIELD_INVALID', 'ca must be the label of a configured CA');
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(match === undefined ? {} : readMatch(match)),
    ...(attributes === undefined ? {} : { attributes: readAttributes(attributes) }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(not_after === undefined ? {} : { not_after: readNotAfter(not_after, now()) }),
    ...(note === undefined ? {} : { note }),
  };
}

function readNotAfter(value: string | null, now: number): number | null {
  if (value === null) return null;
  const end = parseTimestamp('not_after', value);
  if (end <= now) throw badRequest('FIELD_INVALID', 'not_after must be in the future');
  return end;
}

function readAttributes(attributes: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = Object.keys(attributes);
  if (names.length > MAX_ATTRIBUTES)
    throw badRequest('FIELD_INVALID', `attributes must not be more than ${MAX_ATTRIBUTES}`);
  const wrong = names.find((name) => !ATTRIBUTE_NAME.test(name));
  if (wrong !== undefined)
    throw badRequest(
      'FIELD_INVALID',
      `attributes.${JSON.stringify(wrong.slice(0, 64))}: a name is 1 to 64 letters, digits, "_", "." or "-"`,
    );
  return attributes;
}

function readMatch(given: Static<typeof Match> | null): Pick<DeviceRow, 'match' | 'match_key'> {
  if (given === null) return { match: null, match_key: null };
  const { issuer, san, fingerprint_sha256 } = given;
  if (issuer === undefined && fingerprint_sha256 === undefined)
    throw badRequest('FIELD_INVALID', 'match needs an issuer or a fingerprint_sha256');
  if (issuer !== undefined) checkIssuer(issuer);
  if (san !== undefined && !isSan(san))
    throw badRequest(
      'FIELD_INVALID',
      'match.san must be a name like DNS:a.example.com, IP:192.0.2.1, email:… or URI:…',
    );
  const match: DeviceMatch = {
    ...given,
    ...(fingerprint_sha256 === undefined ? {} : { fingerprint_sha256: readFingerprint(fingerprint_sha256) }),
  };
  return { match, match_key: deviceMatchKey(match) };
}

function checkIssuer(text: string): void {
  try {
    if (parseDistinguishedName(text).rdns.length > 0) return;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw badRequest('FIELD_INVALID', `match.issuer must be an RFC 4514 name: ${error.message}`);
  }
  throw badRequest('FIELD_INVALID', 'match.issuer must be an RFC 4514 name, and not empty');
}

/** What openssl prints (upper case, colons) is read too. */
function readFingerprint(text: string): string {
  const hex = text.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw badRequest('FIELD_INVALID', 'match.fingerprint_sha256 must be 64 hex digits');
  return hex;
}

export function deviceRecord(row: DeviceRow): Static<typeof DeviceRecord> {
  return {
    id: row.id,
    ca: row.ca,
    match: row.match === null ? null : { ...row.match },
    attributes: { ...row.attributes },
    enabled: row.enabled,
    not_after: formatOptionalTimestamp(row.not_after),
    note: row.note,
    created_at: formatTimestamp(row.created_at),
    changed_at: formatTimestamp(row.changed_at),
  };
}
