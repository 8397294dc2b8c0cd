/** Devices in the admin API's format. */
import { randomUUID } from 'node:crypto';
import { Type, type Static } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { badRequest } from '../../errors.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { foldedName, parseDistinguishedName, type Name } from '../../pki/x509/name.ts';
import { spkiHash } from '../../pki/x509/public-key.ts';
import { isSan, MATCH_FIELDS, type DeviceMatch } from '../../store/device-match.ts';
import type { DeviceChange, DeviceRow } from '../../store/device-store.ts';
import type { DeviceUse } from '../../store/use-store.ts';
import type { Columns } from './bulk/columns.ts';
import type { AdminDependencies } from './dependencies.ts';
import { checkLabel, findLabel } from './access.ts';
import { Bool, nullable, requestBody, strictObject, Text, Timestamp, titled } from './schemas.ts';
import { formatOptionalTimestamp, formatTimestamp } from '../../timestamp.ts';
import { parseTimestamp, readable, readHash } from './values.ts';
import { validator } from './validation.ts';

const MAX_ATTRIBUTES = 64;
const ATTRIBUTE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

const text = (description: string, maxLength = 1024) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const Match = strictObject(
  {
    issuer_spki_sha256: text("SHA-256 of the issuer's SubjectPublicKeyInfo, hex.", 95),
    serial_number: text('The attribute serialNumber of its subject.'),
    common_name: text('The attribute CN of its subject.'),
    san: text(
      'One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `hardware_module:OID:HEX` (docs/guides/names.md).',
    ),
    fingerprint_sha256: text('SHA-256 of the certificate or its ECDSA twin, hex.', 95),
  },
  {
    description:
      "What identifies this device's foreign certificate. All given fields must match. The issuer's key or a fingerprint is always given.",
  },
);

const NewMatch = strictObject(
  {
    issuer: text(
      'RFC 4514 name of the issuer: the subject of exactly one configured trust anchor or issuer certificate. Stored as `issuer_spki_sha256`.',
    ),
    ...Match.properties,
  },
  {
    description:
      "What identifies this device's foreign certificate. All given fields must match. `issuer`, `issuer_spki_sha256` or `fingerprint_sha256` is required.",
  },
);

const Attributes = Type.Record(Type.String(), Type.String({ maxLength: 1024 }), {
  description: 'Values by name, for the names in its certificates.',
});

const changeable = {
  ca: Type.Optional(nullable(Text('A label: the device can enroll only at that CA.'))),
  match: Type.Optional(nullable(NewMatch)),
  attributes: Type.Optional(Attributes),
  enabled: Type.Optional(Bool('true if absent.')),
  not_after: Type.Optional(nullable(Timestamp('The registration expires at this time, which is in the future.'))),
  note: Type.Optional(nullable(Type.String({ maxLength: 2000 }))),
};

const DeviceIdText = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'The client_id of its tokens, or a principal; no control characters.',
});

export const NewDevice = requestBody('NewDevice', 'The device to register.', { id: DeviceIdText, ...changeable });
export const ChangedDevice = requestBody(
  'ChangedDevice',
  'The fields to change. Absent fields stay unchanged.',
  changeable,
);

export const DeviceRecord = titled('Device', 'A registered device.', {
  id: Type.String(),
  ca: nullable(Text('The label at which the device can enroll; null: any.')),
  match: nullable(Match),
  attributes: Attributes,
  enabled: Type.Boolean(),
  not_after: nullable(Timestamp()),
  note: nullable(Type.String()),
  created_at: Timestamp(),
  changed_at: Timestamp(),
});

export const ListedDevice = titled('ListedDevice', 'A registered device, with what is known of its certificates.', {
  ...DeviceRecord.properties,
  certificate_not_after: nullable(Timestamp('The expiry of its newest certificate that is not revoked.')),
  last_used_at: nullable(Timestamp('When one of its certificates last authenticated on the EST listener.')),
});

const COLUMNS = {
  ...({ id: 'text', ca: 'text', enabled: 'boolean', not_after: 'text', note: 'text' } as const),
  ...Object.fromEntries(MATCH_FIELDS.map((name) => [`match.${name}`, 'text' as const])),
};

/** The columns of CSV: `id ca enabled not_after note`, `match.NAME`, `attributes.NAME`. */
export const DEVICE_COLUMNS: Columns = { named: { ...COLUMNS, 'match.issuer': 'text' }, prefixes: ['attributes.'] };

/** The header of a table of devices with these attributes. */
export const deviceHeader = (attributes: readonly string[]): string[] => [
  ...Object.keys(COLUMNS),
  ...attributes.map((name) => `attributes.${name}`),
];

const checkNew = validator(NewDevice);

type Context = Pick<AdminDependencies, 'cas' | 'issuers' | 'now'>;

/** @throws EstuaryError 400 `FIELD_INVALID` that names the field */
export function readDevice(
  request: FastifyRequest,
  body: unknown,
  context: Context,
): { readonly row: DeviceRow; readonly change: DeviceChange } {
  const { id, ...fields } = checkNew(body);
  checkLabel(request, fields.ca);
  if (/\p{Cc}/u.test(id) || id.trim() === '')
    throw badRequest('FIELD_INVALID', 'id must not be blank or contain control characters');
  const change = readChange(request, fields, context);
  const now = context.now();
  const row: DeviceRow = {
    key: randomUUID(),
    id,
    ca: null,
    enabled: true,
    not_after: null,
    note: null,
    match: null,
    attributes: {},
    created_at: now,
    changed_at: now,
    ...change,
  };
  return { row, change };
}

/** @throws EstuaryError 400 `FIELD_INVALID` that names the field */
export function readChange(
  request: FastifyRequest,
  { ca, match, attributes, enabled, not_after, note }: Static<typeof ChangedDevice>,
  { cas, issuers, now }: Context,
): DeviceChange {
  if (typeof ca === 'string') findLabel(request, cas, ca);
  else if (ca === null) checkLabel(request, ca);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(match === undefined ? {} : { match: match && readMatch(match, issuers()) }),
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

function readMatch(given: Static<typeof NewMatch>, issuers: readonly Certificate[]): DeviceMatch {
  const { issuer, issuer_spki_sha256, fingerprint_sha256, ...others } = given;
  if (issuer === undefined && issuer_spki_sha256 === undefined && fingerprint_sha256 === undefined)
    throw badRequest('FIELD_INVALID', 'match must have an issuer, an issuer_spki_sha256 or a fingerprint_sha256');
  if (others.san !== undefined && !isSan(others.san))
    throw badRequest(
      'FIELD_INVALID',
      'match.san must be a name like DNS:a.example.com, IP:192.0.2.1, email:…, URI:…, upn:… or hardware_module:OID:HEX',
    );
  const named = issuer === undefined ? undefined : issuerKey(issuer, issuers);
  const key = issuer_spki_sha256 === undefined ? named : readHash('match.issuer_spki_sha256', issuer_spki_sha256);
  if (named !== undefined && named !== key)
    throw badRequest('FIELD_INVALID', `match.issuer has another key than match.issuer_spki_sha256: ${named}`);
  return {
    ...(key === undefined ? {} : { issuer_spki_sha256: key }),
    ...others,
    ...(fingerprint_sha256 === undefined
      ? {}
      : { fingerprint_sha256: readHash('match.fingerprint_sha256', fingerprint_sha256) }),
  };
}

/** The key hash of the only configured CA with this name. */
function issuerKey(text: string, issuers: readonly Certificate[]): string {
  const name = foldedName(readName(text));
  const keys = new Set(issuers.filter(({ subject }) => foldedName(subject) === name).map(spkiHash));
  const [key] = keys;
  if (key !== undefined && keys.size === 1) return key;
  const found =
    keys.size === 0
      ? 'is not the subject of a configured trust anchor or issuer certificate'
      : 'is the subject of configured certificates with different keys';
  throw badRequest(
    'FIELD_INVALID',
    `match.issuer ${JSON.stringify(text)} ${found}; give match.issuer_spki_sha256 instead`,
  );
}

function readName(text: string): Name {
  const name = readable('match.issuer', 'an RFC 4514 name', () => parseDistinguishedName(text));
  if (name.rdns.length === 0) throw badRequest('FIELD_INVALID', 'match.issuer must not be empty');
  return name;
}

/** Accepts OpenSSL's form (upper case, colons). */
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

export function listedDevice(row: DeviceRow, use: DeviceUse | undefined): Static<typeof ListedDevice> {
  return {
    ...deviceRecord(row),
    certificate_not_after: formatOptionalTimestamp(use?.certificate_not_after ?? null),
    last_used_at: formatOptionalTimestamp(use?.last_used_at ?? null),
  };
}
