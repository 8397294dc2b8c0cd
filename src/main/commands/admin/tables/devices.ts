/** `estuary admin device …`: what may have certificates. */
import { argument, flag, value, values, type Entry } from '../../command.ts';
import { adminCommand, FORMATS, YES } from '../admin-command.ts';
import { DEVICES } from '../kinds.ts';
import { LIST, lists } from '../list.ts';
import { inPath, records } from '../show.ts';

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
    () =>
      Promise.resolve(
        lists({
          path: '/admin/devices',
          kind: DEVICES,
          filters: { id: 'id', 'ca-label': 'ca', enabled: 'enabled' },
          csv: true,
        }),
      ),
    { calls: ['GET /admin/devices'], roles: reading },
  ),
  adminCommand(
    'device show',
    'One device, with its certificates, tokens, requests and audit records.',
    { id, ...FORMATS },
    () => Promise.resolve(records(({ id: one }) => ({ path: `/admin/devices/${inPath(one)}` }))),
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
    async () => (await import('../device-record.ts')).create,
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
      out: value('FILE', 'where the answers go (default the standard output)'),
    },
    () => import('../device-import.ts'),
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
    async () => (await import('../device-record.ts')).change,
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
    () => Promise.resolve(records(({ id: one }) => switched(one, false))),
    { calls: ['PATCH /admin/devices/{id}'], roles },
  ),
  adminCommand(
    'device enable',
    'It may have certificates again.',
    { id, ...FORMATS },
    () => Promise.resolve(records(({ id: one }) => switched(one, true))),
    { calls: ['PATCH /admin/devices/{id}'], roles },
  ),
  adminCommand(
    'device delete',
    'Forget a device; its certificates do not pass to a later one of its id.',
    { id, revoke: flag('revoke its certificates, too'), ...YES },
    () => import('../device-delete.ts'),
    { calls: ['DELETE /admin/devices/{id}', 'GET /admin/devices/{id}'], roles },
  ),
];

const switched = (id: string, enabled: boolean) =>
  ({ method: 'PATCH', path: `/admin/devices/${inPath(id)}`, body: { enabled } }) as const;
