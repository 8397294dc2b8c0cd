/** `estuary admin otp …`: one-time passwords. */
import { argument, flag, required, value, type Entry } from '../../command.ts';
import { adminCommand, FORMATS, YES } from '../admin-command.ts';
import { OTPS } from '../kinds.ts';
import { LIST, lists } from '../list.ts';
import { inPath, records } from '../show.ts';
import { readTime } from '../times.ts';

const id = argument('of the token, as the list shows it');
const roles = ['admin', 'ra'];
const EXPIRES = 'when it ends: 2030-01-31T12:00:00Z, a day, or so long from now, as 12h or 30d';

export const OTP_COMMANDS: readonly Entry[] = [
  adminCommand(
    'otp create',
    'Make a one-time password, and print the lines with which a device enrols.',
    {
      'client-id': argument('whom it is for'),
      'max-uses': value('N', 'how many certificates (default otp.max_uses)'),
      'expires-at': value('TIME', EXPIRES),
      'ca-label': value('LABEL', 'for this CA alone'),
      'est-url': value('URL', 'the EST listener, for the lines (or ESTUARY_EST_URL, or est_url of the profile)'),
      'est-ca': value('FILE', 'PEM: whom its certificate comes from, for the lines (default --ca)'),
      qr: flag('a QR code of it, too'),
      ...FORMATS,
    },
    () => import('../otp-create.ts'),
    {
      calls: ['POST /admin/otp'],
      roles,
      about: 'The password is shown this once: the server keeps nothing that it could be told from.',
    },
  ),
  adminCommand(
    'otp bulk',
    'Make one-time passwords for the rows of a file, up to any number.',
    {
      file: argument('CSV (client_id,max_uses,expires_at,ca) or NDJSON; - is the standard input'),
      out: value('FILE', 'where the answers go, which nobody else may read (default the standard output)'),
    },
    () => import('../otp-bulk.ts'),
    {
      calls: ['POST /admin/otp/bulk'],
      roles,
      about:
        'Each row is answered for itself, in the format of the file: the token, or row, code and message. Exit code 1 where a row failed.',
    },
  ),
  adminCommand(
    'otp list',
    'The tokens, without the tokens.',
    {
      'client-id': value('ID', 'whom they are for'),
      status: value('STATUS', 'active, consumed, expired or revoked', ['active', 'consumed', 'expired', 'revoked']),
      ...LIST,
    },
    () =>
      Promise.resolve(
        lists({ path: '/admin/otp', kind: OTPS, filters: { 'client-id': 'client_id', status: 'status' }, csv: true }),
      ),
    { calls: ['GET /admin/otp'], roles },
  ),
  adminCommand(
    'otp show',
    'One token, without the token.',
    { id, ...FORMATS },
    () => Promise.resolve(records(({ id: one }) => ({ path: `/admin/otp/${inPath(one)}` }))),
    { calls: ['GET /admin/otp/{id}'], roles },
  ),
  adminCommand(
    'otp extend',
    'Change when a token ends. One that has expired lives again.',
    { id, 'expires-at': required('TIME', EXPIRES), ...FORMATS },
    () =>
      Promise.resolve(
        records((values, now) => ({
          method: 'PATCH',
          path: `/admin/otp/${inPath(values.id)}`,
          body: { expires_at: readTime('--expires-at', values['expires-at'], now, 1) },
        })),
      ),
    { calls: ['PATCH /admin/otp/{id}'], roles },
  ),
  adminCommand('otp revoke', 'Revoke a token: it is dead at once.', { id, ...YES }, () => import('../otp-revoke.ts'), {
    calls: ['DELETE /admin/otp/{id}', 'GET /admin/otp/{id}'],
    roles,
  }),
];
