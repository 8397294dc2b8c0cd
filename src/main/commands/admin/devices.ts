/** `estuary admin device …`: the device registry. */
import { readFile } from 'node:fs/promises';
import { describe } from '../../../errors.ts';
import { pemText } from '../../../pki/der/pem.ts';
import { InputError } from '../../../pki/input-error.ts';
import { isAnchor, parsePemCertificates } from '../../../pki/x509/certificate.ts';
import { spkiHash } from '../../../pki/x509/public-key.ts';
import { argument, type Entry, flag, time, UsageError, value, type Values, values } from '../command.ts';
import { adminCommand, recordCommand } from './admin-command.ts';
import { type JsonRecord, recordsAt } from './json.ts';
import { DEVICES, inWords } from './output.ts';
import { listCommand } from './list.ts';
import { sendRows } from './send-rows.ts';
import { readTime } from './times.ts';

const reading = ['admin', 'ra', 'auditor'];
const roles = ['admin', 'ra'];
const id = argument('ID of the device');
const chosen = {
  id,
  at: value('LABEL', "label of the device, if its ID exists at several; '' is the device without a label"),
};
const chosenLabel = ({ at }: { readonly at: string | undefined }) => ({ ca: at });

const described = {
  'ca-label': value('LABEL', 'the device can enroll only at this CA'),
  'issuer-file': value('FILE', "certificate of the CA that issued the device's certificate, PEM or DER"),
  'match-issuer': value('DN', 'subject of that CA, RFC 4514; a configured trust anchor or issuer certificate'),
  'match-issuer-spki': value('HEX', "SHA-256 of that CA's SubjectPublicKeyInfo"),
  'match-serial-number': value('TEXT', "attribute serialNumber in the subject of the device's certificate"),
  'match-common-name': value('TEXT', 'attribute CN in that subject'),
  'match-san': value('NAME', 'one of its alternative names: DNS:a, IP:192.0.2.1, email:…, URI:…, upn:…'),
  'match-fingerprint': value('HEX', "SHA-256 of the device's certificate"),
  attribute: values('NAME=TEXT', 'for the names in its certificates'),
  'not-after': time('when the registration expires: a time, or a period such as 365d', 1),
  note: value('TEXT', 'a note'),
};

const CREATE = {
  id,
  ...described,
  disabled: flag('register it as disabled'),
  upsert: flag('change the given fields if the device is already registered'),
};
const CHANGE = {
  ...chosen,
  ...described,
  clear: values('FIELD', 'field to remove: ca, match, attributes, not_after or note'),
};

const switchCommand = (verb: 'disable' | 'enable', summary: string) =>
  recordCommand(`device ${verb}`, summary, {
    call: 'PATCH /admin/devices/{id}',
    roles,
    options: chosen,
    query: chosenLabel,
    body: () => ({ enabled: verb === 'enable' }),
  });

export const DEVICE_COMMANDS: readonly Entry[] = [
  listCommand('device list', 'List the registered devices. The output of --csv can be imported again.', {
    roles: reading,
    filters: {
      id: value('ID', 'the complete ID'),
      'ca-label': value('LABEL', 'devices that can enroll only at this CA'),
      search: value('TEXT', 'a part of the ID, the note or a value of match'),
      enabled: value('YESNO', 'true: enabled devices; false: disabled devices', ['true', 'false']),
    },
    path: '/admin/devices',
    kind: DEVICES,
  }),
  recordCommand('device show', 'Show one device with its certificates, tokens, requests and audit records.', {
    call: 'GET /admin/devices/{id}',
    roles: reading,
    options: chosen,
    query: chosenLabel,
  }),
  recordCommand('device create', 'Register a device.', {
    call: 'POST /admin/devices',
    roles,
    options: CREATE,
    query: ({ upsert }) => ({ mode: upsert ? 'upsert' : undefined }),
    body: async (values, now) => ({
      id: values.id,
      ...(await fieldsOf(values, now)),
      ...(values.disabled ? { enabled: false } : {}),
    }),
  }),
  adminCommand('device import', 'Register the devices in a file.', {
    options: {
      file: argument(
        'CSV (id,ca,enabled,not_after,note,match.NAME,attributes.NAME) or NDJSON; - is the standard input',
      ),
      upsert: flag('change registered devices: only the fields in the row'),
      'dry-run': flag('check every row and change nothing'),
      out: value('FILE', 'file for the results (default: standard output)'),
    },
    run: ({ file, upsert, out, 'dry-run': dryRun }, session) => {
      const order = { path: '/admin/devices', query: { mode: upsert ? 'upsert' : undefined }, file, out, dryRun };
      return sendRows({ ...order, what: 'importing', done: 'devices registered' }, session);
    },
    calls: ['POST /admin/devices'],
    roles,
    about:
      'Prints one result per row in the format of the file: the device, or row, code and message. The exit code is 1 if a row failed. With --upsert, an absent column or an empty cell changes nothing.',
  }),
  recordCommand('device change', 'Change a device. Other fields stay unchanged.', {
    call: 'PATCH /admin/devices/{id}',
    roles,
    options: CHANGE,
    query: chosenLabel,
    body: changesOf,
    about: 'match and attributes are replaced as a whole.',
  }),
  switchCommand('disable', 'Disable a device: it gets no new certificates. Its certificates stay valid.'),
  switchCommand('enable', 'Enable a device: it can get certificates again.'),
  recordCommand('device delete', 'Delete a device. Its certificates do not pass to a later device with the same ID.', {
    call: 'DELETE /admin/devices/{id}',
    roles,
    options: { ...chosen, revoke: flag('also revoke its certificates') },
    query: ({ at, revoke }, _now, shown) => ({ ca: at, revoke: revoke && shown !== undefined ? 'true' : undefined }),
    confirms: {
      of: 'GET /admin/devices/{id}',
      about: (device, { revoke }) => {
        const valid = recordsAt(device, 'certificates').filter(({ status }) => status === 'valid').length;
        const summary = `  ${valid} of its latest certificates are valid${revoke ? ' and will be revoked' : ''}\n`;
        return inWords(device, ['id', 'ca', 'match', 'note']) + summary;
      },
      question: 'Delete this device?',
    },
    done: (values) => `deleted the device ${values.id}${values.revoke ? ' and revoked its certificates' : ''}`,
  }),
];

/** Fields that can be cleared, with their empty values. */
const CLEARED: JsonRecord = { ca: null, match: null, attributes: {}, not_after: null, note: null };

async function changesOf(values: Values<typeof CHANGE>, now: number): Promise<JsonRecord> {
  const unknown = values.clear.find((name) => !Object.hasOwn(CLEARED, name));
  if (unknown !== undefined)
    throw new UsageError(`--clear: "${unknown}" is unknown. Allowed: ${Object.keys(CLEARED).join(', ')}`);
  const fields = await fieldsOf(values, now);
  const both = values.clear.find((name) => Object.hasOwn(fields, name));
  if (both !== undefined) throw new UsageError(`--clear ${both} and a new value exclude each other`);
  const body = { ...fields, ...Object.fromEntries(values.clear.map((name) => [name, CLEARED[name]])) };
  if (Object.keys(body).length === 0) throw new UsageError('nothing to change: pass an option such as --note');
  return body;
}

async function fieldsOf(values: Values<typeof described>, now: number): Promise<JsonRecord> {
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
    const [issuer, ...more] = parsePemCertificates(pemText(bytes));
    if (issuer === undefined || more.length > 0) throw new InputError('the file must contain exactly one certificate');
    if (!isAnchor(issuer)) throw new InputError('this is not a CA certificate');
    return spkiHash(issuer);
  } catch (error) {
    throw new UsageError(`--issuer-file ${file}: ${describe(error)}`);
  }
}

function readAttribute(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`--attribute: "${text}" must have the form NAME=TEXT`);
  return [text.slice(0, at), text.slice(at + 1)];
}

const given = (fields: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
