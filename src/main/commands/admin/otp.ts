/** `estuary admin otp …`: one-time passwords. */
import { resolve } from 'node:path';
import { type Enrollment, EST_PORT, estUrl, qrText, readyLines, WELL_KNOWN } from '../../../ready-lines.ts';
import { argument, type Entry, EXIT, flag, required, time, UsageError, value, type Values } from '../command.ts';
import { adminCommand, FORMATS, queryOf, recordCommand, type Session } from './admin-command.ts';
import type { Connection } from './connection.ts';
import { textAt } from './json.ts';
import { formatOf, inWords, OTPS, printRecord } from './output.ts';
import { listCommand } from './list.ts';
import { sendRows } from './send-rows.ts';
import { readCount, readTime } from './times.ts';

const id = argument('ID of the token, as in the list');
const roles = ['admin', 'ra'];
const EXPIRES = 'expiry: 2030-01-31T12:00:00Z, a date, or a period such as 12h or 30d';

const CREATE = {
  'client-id': argument('the client_id of the device'),
  'max-uses': value('N', 'number of certificates (default otp.max_uses)'),
  'expires-at': time(EXPIRES, 1),
  'ca-label': value('LABEL', 'the token works only at this CA'),
  'est-url': value('URL', 'the EST listener, for the commands (or ESTUARY_EST_URL, or est_url of the profile)'),
  'est-ca': value('FILE', 'PEM: the CAs of its certificate, for the commands (default --ca)'),
  qr: flag('also print a QR code'),
  ...FORMATS,
};

export const OTP_COMMANDS: readonly Entry[] = [
  adminCommand('otp create', 'Create a one-time password, and print commands that enroll a device with it.', {
    options: CREATE,
    run: createToken,
    calls: ['POST /admin/otp'],
    roles,
    about: 'The password is shown only once: the server stores a hash.',
  }),
  adminCommand('otp bulk', 'Create one-time passwords for the rows of a file.', {
    options: {
      file: argument('CSV (client_id,max_uses,expires_at,ca) or NDJSON; - is the standard input'),
      'dry-run': flag('check every row and create no token'),
      out: value('FILE', 'file for the results, readable only by you (default: standard output)'),
    },
    run: ({ file, out, 'dry-run': dryRun }, session) => {
      const order = { path: '/admin/otp/bulk', file, out, dryRun, estimates: true };
      return sendRows({ ...order, what: 'creating tokens', done: 'tokens created' }, session);
    },
    calls: ['POST /admin/otp/bulk'],
    roles,
    about:
      'Prints one result per row in the format of the file: the token, or row, code and message. The exit code is 1 if a row failed. The command first measures how long the hashes take and shows an estimate.',
  }),
  listCommand('otp list', 'List the one-time passwords. Secrets are never shown.', {
    roles,
    filters: {
      'client-id': value('ID', 'the client_id of the device'),
      search: value('TEXT', 'a part of the client_id, or the ID'),
      status: value('STATUS', 'active, consumed, expired or revoked', ['active', 'consumed', 'expired', 'revoked']),
    },
    path: '/admin/otp',
    kind: OTPS,
  }),
  recordCommand('otp show', 'Show a one-time password, without its secret.', {
    call: 'GET /admin/otp/{id}',
    roles,
    options: { id },
  }),
  recordCommand('otp extend', 'Change the expiry date of a one-time password. An expired one becomes valid again.', {
    call: 'PATCH /admin/otp/{id}',
    roles,
    options: { id, 'expires-at': required('TIME', EXPIRES) },
    body: (values, now) => ({ expires_at: readTime('--expires-at', values['expires-at'], now, 1) }),
  }),
  recordCommand('otp revoke', 'Revoke a one-time password.', {
    call: 'DELETE /admin/otp/{id}',
    roles,
    options: { id },
    confirms: {
      of: 'GET /admin/otp/{id}',
      about: (token) => inWords(token, ['id', 'client_id', 'ca', 'status', 'expires_at']),
      question: 'Revoke this token?',
    },
    done: (values) => `revoked the token ${values.id}`,
  }),
];

async function createToken(values: Values<typeof CREATE>, session: Session): Promise<number> {
  const format = formatOf(values);
  const { 'client-id': client_id, 'ca-label': ca } = values;
  const max_uses = readCount('--max-uses', values['max-uses']);
  const est = estUrlOf(values['est-url'], session.client.connection);
  const record = await session.client.record('POST', '/admin/otp', {
    body: { client_id, max_uses, ca, ...queryOf({ 'expires-at': CREATE['expires-at'] }, values, session.now()) },
  });
  const anchors = values['est-ca'] ?? session.client.connection.files.ca;
  const enrollment = {
    est: est.url,
    label: ca,
    clientId: client_id,
    token: textAt(record, 'token'),
    anchors: anchors === undefined ? undefined : resolve(anchors),
  };
  printRecord(record, values, session);
  if (format === 'table') {
    const { client, curl } = readyLines(enrollment);
    session.out(`\nwith Estuary:\n\n${client}\n\nwith curl and openssl:\n\n${curl}\n`);
    if (est.isGuessed)
      session.err(
        `\nThe address of the EST listener is a guess (${est.url}). Set it with --est-url, ESTUARY_EST_URL or est_url of a profile.\n`,
      );
  }
  if (values.qr) (format === 'table' ? session.out : session.err)(`\n${await enrollmentQr(enrollment)}`);
  return EXIT.ok;
}

/** The enrollment URL. The admin API does not know it, so by default it is a guess. @throws UsageError */
function estUrlOf(
  option: string | undefined,
  { origin, estUrl: known }: Pick<Connection, 'origin' | 'estUrl'>,
): { readonly url: string; readonly isGuessed: boolean } {
  const text = option ?? known;
  if (text === undefined)
    return { url: `https://${new URL(origin).hostname}:${EST_PORT}${WELL_KNOWN}`, isGuessed: true };
  const url = estUrl(text);
  if (url === undefined)
    throw new UsageError(
      `--est-url: "${text}" must be an https:// URL such as https://est.example.com:9443/.well-known/est`,
    );
  return { url, isGuessed: false };
}

/** Quiet zone in modules (ISO/IEC 18004 §5.3.8). */
const QUIET = 4;

const BLOCKS = [' ', '▄', '▀', '█'];

/** A QR code for a terminal, two rows per line, dark on light in any color scheme. Loads its library on demand. */
async function enrollmentQr(enrollment: Enrollment): Promise<string> {
  const { default: qrcode } = await import('qrcode-generator');
  const code = qrcode(0, 'M');
  code.addData(String.fromCharCode(...Buffer.from(qrText(enrollment), 'utf8')), 'Byte');
  code.make();
  const size = code.getModuleCount();
  const isDark = (row: number, column: number): boolean =>
    row >= 0 && row < size && column >= 0 && column < size && code.isDark(row, column);
  let text = '';
  for (let row = -QUIET; row < size + QUIET; row += 2) {
    text += '\x1b[30;107m';
    for (let column = -QUIET; column < size + QUIET; column += 1)
      text += BLOCKS[(isDark(row, column) ? 2 : 0) + (isDark(row + 1, column) ? 1 : 0)] ?? ' ';
    text += '\x1b[0m\n';
  }
  return text;
}
