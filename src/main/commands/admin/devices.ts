/** `estuary admin device …`: the device registry. */
import { readFile } from 'node:fs/promises';
import { InputError } from '../../../pki/input-error.ts';
import { parseCertificate, parsePemCertificates } from '../../../pki/x509/certificate.ts';
import { spkiHash } from '../../../pki/x509/public-key.ts';
import { argument, type Entry, EXIT, flag, UsageError, value, values } from '../command.ts';
import { adminCommand, confirm, FORMATS, records, type Session, YES } from './admin-command.ts';
import { type JsonRecord, recordsAt } from './json.ts';
import { DEVICES, formatOf, type FormatValues, inWords, printRecord } from './output.ts';
import { LIST, lists } from './list.ts';
import { sendRows } from './send-rows.ts';
import { readTime } from './times.ts';

const reading = ['admin', 'ra', 'auditor'];
const roles = ['admin', 'ra'];
const id = argument('of the device');

const described = {
  'ca-label': value('LABEL', 'for this CA alone'),
  'issuer-file': value('FILE', "certificate of the CA that issued the device's certificate, PEM or DER"),
  'match-issuer': value('DN', 'subject of that CA, RFC 4514; a configured trust anchor or issuer certificate'),
  'match-issuer-spki': value('HEX', "SHA-256 of that CA's SubjectPublicKeyInfo"),
  'match-serial-number': value('TEXT', "attribute serialNumber in the subject of the device's certificate"),
  'match-common-name': value('TEXT', 'attribute CN in that subject'),
  'match-san': value('NAME', 'one of its alternative names: DNS:a, IP:192.0.2.1, email:…, URI:…'),
  'match-fingerprint': value('HEX', "SHA-256 of the device's certificate"),
  attribute: values('NAME=TEXT', 'for the names in its certificates'),
  'not-after': value('TIME', 'from then on it is no device any more; 365d: for a year'),
  note: value('TEXT', 'for people'),
};

export const DEVICE_COMMANDS: readonly Entry[] = [
  adminCommand(
    'device list',
    'The devices that are registered; with --csv a table that can be imported again.',
    {
      id: value('ID', 'the whole id'),
      'ca-label': value('LABEL', 'those that are limited to this CA'),
      enabled: value('YESNO', 'true: those that are enabled; false: those that are not', ['true', 'false']),
      ...LIST,
    },
    lists({
      path: '/admin/devices',
      kind: DEVICES,
      filters: { id: 'id', 'ca-label': 'ca', enabled: 'enabled' },
      csv: true,
    }),
    { calls: ['GET /admin/devices'], roles: reading },
  ),
  adminCommand(
    'device show',
    'One device, with its certificates, tokens, requests and audit records.',
    { id, ...FORMATS },
    records(({ id: one }) => ({ path: `/admin/devices/${encodeURIComponent(one)}` })),
    { calls: ['GET /admin/devices/{id}'], roles: reading },
  ),
  adminCommand(
    'device create',
    'Register a device.',
    {
      id,
      ...described,
      disabled: flag('not to be used yet'),
      upsert: flag('change the given fields if the device is registered'),
      ...FORMATS,
    },
    createDevice,
    { calls: ['POST /admin/devices'], roles },
  ),
  adminCommand(
    'device import',
    'Register the devices of a file, up to any number.',
    {
      file: argument(
        'CSV (id,ca,enabled,not_after,note,match.NAME,attributes.NAME) or NDJSON; - is the standard input',
      ),
      upsert: flag('change registered devices: only the fields that a row gives'),
      'dry-run': flag('check every row and change nothing'),
      out: value('FILE', 'where the answers go (default the standard output)'),
    },
    ({ file, upsert, out, 'dry-run': dryRun }, session) => {
      const order = { path: '/admin/devices', query: { mode: upsert ? 'upsert' : undefined }, file, out, dryRun };
      return sendRows({ ...order, what: 'importing', done: 'devices registered' }, session);
    },
    {
      calls: ['POST /admin/devices'],
      roles,
      about:
        'The answer has a line for each row, in the format of the file: the device, or row, code and message. The exit code is 1 if a row failed. With --upsert, an absent column or an empty cell changes nothing.',
    },
  ),
  adminCommand(
    'device change',
    'Change a device; what is not named stays.',
    {
      id,
      ...described,
      clear: values('FIELD', 'ca, match, attributes, not_after or note: taken away'),
      ...FORMATS,
    },
    changeDevice,
    {
      calls: ['PATCH /admin/devices/{id}'],
      roles,
      about: 'The match and the attributes are replaced as a whole.',
    },
  ),
  adminCommand(
    'device disable',
    'It gets no certificate from now on; those that it has stay valid.',
    { id, ...FORMATS },
    records(({ id: one }) => switched(one, false)),
    { calls: ['PATCH /admin/devices/{id}'], roles },
  ),
  adminCommand(
    'device enable',
    'It may have certificates again.',
    { id, ...FORMATS },
    records(({ id: one }) => switched(one, true)),
    { calls: ['PATCH /admin/devices/{id}'], roles },
  ),
  adminCommand(
    'device delete',
    'Forget a device; its certificates do not pass to a later one of its id.',
    { id, revoke: flag('revoke its certificates, too'), ...YES },
    deleteDevice,
    { calls: ['DELETE /admin/devices/{id}', 'GET /admin/devices/{id}'], roles },
  ),
];

const switched = (id: string, enabled: boolean) =>
  ({ method: 'PATCH', path: `/admin/devices/${encodeURIComponent(id)}`, body: { enabled } }) as const;

interface DeviceValues extends FormatValues {
  readonly id: string;
  readonly 'ca-label': string | undefined;
  readonly 'match-issuer': string | undefined;
  readonly 'match-issuer-spki': string | undefined;
  readonly 'issuer-file': string | undefined;
  readonly 'match-serial-number': string | undefined;
  readonly 'match-common-name': string | undefined;
  readonly 'match-san': string | undefined;
  readonly 'match-fingerprint': string | undefined;
  readonly attribute: readonly string[];
  readonly 'not-after': string | undefined;
  readonly note: string | undefined;
}

/** Fields that can be cleared, with their empty values. */
const CLEARED: JsonRecord = { ca: null, match: null, attributes: {}, not_after: null, note: null };

async function createDevice(
  values: DeviceValues & { readonly disabled: boolean; readonly upsert: boolean },
  session: Session,
): Promise<number> {
  formatOf(values);
  const { id, disabled, upsert } = values;
  const body = { id, ...(await fieldsOf(values, session.now())), ...(disabled ? { enabled: false } : {}) };
  const query = { mode: upsert ? 'upsert' : undefined };
  printRecord(await session.client.record('POST', '/admin/devices', { query, body }), values, session);
  return EXIT.ok;
}

async function changeDevice(
  values: DeviceValues & { readonly clear: readonly string[] },
  session: Session,
): Promise<number> {
  formatOf(values);
  const unknown = values.clear.find((name) => !Object.hasOwn(CLEARED, name));
  if (unknown !== undefined)
    throw new UsageError(`--clear: "${unknown}" is none of ${Object.keys(CLEARED).join(', ')}`);
  const fields = await fieldsOf(values, session.now());
  const both = values.clear.find((name) => Object.hasOwn(fields, name));
  if (both !== undefined) throw new UsageError(`--clear ${both} does not go with a new one`);
  const body = { ...fields, ...Object.fromEntries(values.clear.map((name) => [name, CLEARED[name]])) };
  if (Object.keys(body).length === 0) throw new UsageError('what is to change? An option says it');
  const path = `/admin/devices/${encodeURIComponent(values.id)}`;
  printRecord(await session.client.record('PATCH', path, { body }), values, session);
  return EXIT.ok;
}

async function fieldsOf(values: DeviceValues, now: number): Promise<JsonRecord> {
  const { 'ca-label': ca, note, 'not-after': end, 'issuer-file': file } = values;
  if (file !== undefined && values['match-issuer-spki'] !== undefined)
    throw new UsageError('--issuer-file and --match-issuer-spki exclude each other');
  const match = given({
    issuer: values['match-issuer'],
    issuer_spki_sha256: file === undefined ? values['match-issuer-spki'] : await keyOfIssuer(file),
    serial_number: values['match-serial-number'],
    common_name: values['match-common-name'],
    san: values['match-san'],
    fingerprint_sha256: values['match-fingerprint'],
  });
  return given({
    ca,
    note,
    not_after: end === undefined ? undefined : readTime('--not-after', end, now, 1),
    match: Object.keys(match).length === 0 ? undefined : match,
    attributes: values.attribute.length === 0 ? undefined : Object.fromEntries(values.attribute.map(readAttribute)),
  });
}

/** SHA-256 of the public key in a CA certificate file (PEM or DER). @throws UsageError */
async function keyOfIssuer(file: string): Promise<string> {
  try {
    const bytes = await readFile(file);
    const [issuer, ...more] = bytes.includes('-----BEGIN ')
      ? parsePemCertificates(bytes.toString('latin1'))
      : [parseCertificate(bytes)];
    if (issuer === undefined || more.length > 0) throw new InputError('the file must contain exactly one certificate');
    if (!issuer.isCa && issuer.version > 1) throw new InputError('this is not the certificate of a CA');
    return spkiHash(issuer);
  } catch (error) {
    throw new UsageError(`--issuer-file ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readAttribute(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`--attribute: "${text}" is not of the form NAME=TEXT`);
  return [text.slice(0, at), text.slice(at + 1)];
}

const given = (fields: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(fields).filter(([, one]) => one !== undefined));

async function deleteDevice(
  { id, revoke, yes }: { readonly id: string; readonly revoke: boolean; readonly yes: boolean },
  session: Session,
): Promise<number> {
  const path = `/admin/devices/${encodeURIComponent(id)}`;
  const device = await session.client.record('GET', path);
  const valid = recordsAt(device, 'certificates').filter(({ status }) => status === 'valid').length;
  const about = `${inWords(device, ['id', 'ca', 'match', 'note'])}  ${valid} of its latest certificates are valid${revoke ? '; they are revoked' : ''}\n`;
  await confirm({ about, question: 'Forget this device?', yes }, session);
  await session.client.record('DELETE', path, { query: { revoke: revoke ? 'true' : undefined } });
  session.out(`the device ${id} is forgotten${revoke ? ', and its certificates are revoked' : ''}\n`);
  return EXIT.ok;
}
