/** `estuary admin cert …`: issued certificates. */
import { REVOCATION_REASONS } from '../../../../pki/x509/crl.ts';
import { argument, flag, required, value, type Entry } from '../../command.ts';
import { adminCommand, FORMATS, YES } from '../admin-command.ts';
import { CERTIFICATE_FILTERS, CERTIFICATE_TIMES } from '../certificate-filters.ts';
import { CERTIFICATES } from '../kinds.ts';
import { LIST, lists } from '../list.ts';
import { inPath, records } from '../show.ts';

const serial = argument('serial number in hex, as the list shows it or with colons');
const caLabel = value('LABEL', 'the CA, where two of them used the number');
const reading = ['admin', 'ra', 'auditor'];

const filters = {
  'ca-label': value('LABEL', "a CA's label"),
  label: value('LABEL', 'a further label of a CA: what was asked for there'),
  subject: value('TEXT', 'a part of the subject'),
  san: value('TEXT', 'a part of one of the names, as records have them (DNS:a)'),
  serial: value('HEX', 'the serial number'),
  requester: value('NAME', 'who asked for it'),
  device: value('ID', 'what a registered device was issued'),
  'issued-after': value('TIME', 'issued after this time; 7d: in the last seven days'),
  'expires-before': value('TIME', 'ending before this time; 30d: within thirty days'),
};

const why = {
  reason: value('REASON', `${REVOCATION_REASONS.join(', ')} (default unspecified)`, REVOCATION_REASONS),
  'invalidity-date': value('TIME', 'since when the key is thought to be compromised; 2d: for two days'),
};

export const CERTIFICATE_COMMANDS: readonly Entry[] = [
  adminCommand(
    'cert list',
    'The certificates that were issued.',
    {
      ...filters,
      status: value('STATUS', 'valid, revoked or expired', ['valid', 'revoked', 'expired']),
      ...LIST,
    },
    () =>
      Promise.resolve(
        lists({
          path: '/admin/certificates',
          kind: CERTIFICATES,
          filters: CERTIFICATE_FILTERS,
          times: CERTIFICATE_TIMES,
          csv: true,
        }),
      ),
    { calls: ['GET /admin/certificates'], roles: reading },
  ),
  adminCommand(
    'cert show',
    'One certificate, with its PEM.',
    { serial, 'ca-label': caLabel, pem: flag('the PEM alone'), ...FORMATS },
    () => import('../cert-show.ts'),
    { calls: ['GET /admin/certificates/{serial}'], roles: reading },
  ),
  adminCommand(
    'cert chain',
    'The certificates above a certificate, up to the root.',
    { serial, 'ca-label': caLabel, ...FORMATS },
    () =>
      Promise.resolve(
        records((values) => ({
          path: `/admin/certificates/${inPath(values.serial)}/chain`,
          query: { ca: values['ca-label'] },
        })),
      ),
    { calls: ['GET /admin/certificates/{serial}/chain'], roles: reading },
  ),
  adminCommand(
    'cert revoke',
    'Revoke a certificate: it authenticates nobody from now on.',
    { serial, 'ca-label': caLabel, ...why, ...YES, ...FORMATS },
    () => import('../cert-revoke.ts'),
    {
      calls: ['POST /admin/certificates/{serial}/revoke', 'GET /admin/certificates/{serial}'],
      roles: ['admin', 'ra'],
      about: 'There is no way back, also from certificateHold.',
    },
  ),
  adminCommand(
    'cert revoke-all',
    'Revoke every certificate that filters find.',
    {
      ...filters,
      status: value('STATUS', 'valid, the default, or expired', ['valid', 'expired']),
      ...why,
      count: value('N', 'how many are meant: with more or fewer nothing is revoked'),
      'dry-run': flag('count, and revoke none'),
      ...YES,
    },
    () => import('../cert-revoke-all.ts'),
    {
      calls: ['POST /admin/certificates/revoke'],
      roles: ['admin', 'ra'],
      about: 'Takes at least one filter beside --status; counts first, and asks.',
    },
  ),
  adminCommand(
    'cert import',
    'Take in a certificate that the store does not know, so that it can be revoked.',
    {
      file: argument('the certificate, PEM'),
      'ca-label': required('LABEL', 'the CA that signed it'),
      ...FORMATS,
    },
    () => import('../cert-import.ts'),
    { calls: ['POST /admin/certificates'], roles: ['admin'] },
  ),
];
