/** `estuary admin cert …`: issued certificates. */
import { REVOCATION_REASONS } from '../../../pki/x509/crl.ts';
import { argument, CommandError, type Entry, EXIT, flag, required, UsageError, value } from '../command.ts';
import { progress } from '../progress.ts';
import { adminCommand, confirm, FORMATS, records, type Session, YES } from './admin-command.ts';
import { readInput } from './connection.ts';
import { textAt } from './json.ts';
import { CERTIFICATES, formatOf, type FormatValues, inWords, printRecord } from './output.ts';
import { LIST, lists, readFilters } from './list.ts';
import { readCount, readTime } from './times.ts';

const serial = argument('serial number in hex, as in the list or with colons');
const caLabel = value('LABEL', 'the CA, if several CAs used the serial number');
const reading = ['admin', 'ra', 'auditor'];

export const filters = {
  'ca-label': value('LABEL', "a CA's label"),
  label: value('LABEL', 'a further label of a CA: certificates requested there'),
  subject: value('TEXT', 'a part of the subject'),
  san: value('TEXT', 'a part of one of the names, as in records (DNS:a)'),
  serial: value('HEX', 'the serial number'),
  requester: value('NAME', 'the requester'),
  device: value('ID', 'certificates of this registered device'),
  'issued-after': value('TIME', 'issued after this time, or within this period: 7d'),
  'expires-before': value('TIME', 'expires before this time, or within this period: 30d'),
};

const why = {
  reason: value('REASON', `${REVOCATION_REASONS.join(', ')} (default unspecified)`, REVOCATION_REASONS),
  'invalidity-date': value('TIME', 'when the key was compromised: a time, or a period such as 2d'),
};

/** Command line filters by the API's names. */
export const CERTIFICATE_FILTERS = {
  'ca-label': 'ca',
  label: 'label',
  subject: 'subject',
  san: 'san',
  serial: 'serial',
  requester: 'requester',
  device: 'device',
  status: 'status',
  'issued-after': 'issued_after',
  'expires-before': 'expires_before',
} as const;

export const CERTIFICATE_TIMES = { 'issued-after': -1, 'expires-before': 1 } as const;

export const CERTIFICATE_COMMANDS: readonly Entry[] = [
  adminCommand(
    'cert list',
    'List the issued certificates.',
    {
      ...filters,
      status: value('STATUS', 'valid, revoked or expired', ['valid', 'revoked', 'expired']),
      ...LIST,
    },
    lists({
      path: '/admin/certificates',
      kind: CERTIFICATES,
      filters: CERTIFICATE_FILTERS,
      times: CERTIFICATE_TIMES,
      csv: true,
    }),
    { calls: ['GET /admin/certificates'], roles: reading },
  ),
  adminCommand(
    'cert show',
    'Show one certificate with its PEM.',
    { serial, 'ca-label': caLabel, pem: flag('print only the PEM'), ...FORMATS },
    showCertificate,
    { calls: ['GET /admin/certificates/{serial}'], roles: reading },
  ),
  adminCommand(
    'cert chain',
    'Show the chain of a certificate, up to the root.',
    { serial, 'ca-label': caLabel, ...FORMATS },
    records((values) => ({
      path: `/admin/certificates/${encodeURIComponent(values.serial)}/chain`,
      query: { ca: values['ca-label'] },
    })),
    { calls: ['GET /admin/certificates/{serial}/chain'], roles: reading },
  ),
  adminCommand(
    'cert revoke',
    'Revoke a certificate. It no longer authenticates.',
    { serial, 'ca-label': caLabel, ...why, ...YES, ...FORMATS },
    revokeCertificate,
    {
      calls: ['POST /admin/certificates/{serial}/revoke', 'GET /admin/certificates/{serial}'],
      roles: ['admin', 'ra'],
      about: 'Only certificateHold can be reversed, with cert release.',
    },
  ),
  adminCommand(
    'cert release',
    'Release a certificate from hold. It is valid again.',
    { serial, 'ca-label': caLabel, ...FORMATS },
    records((values) => ({
      method: 'POST',
      path: `/admin/certificates/${encodeURIComponent(values.serial)}/release`,
      query: { ca: values['ca-label'] },
    })),
    { calls: ['POST /admin/certificates/{serial}/release'], roles: ['admin', 'ra'] },
  ),
  adminCommand(
    'cert revoke-all',
    'Revoke every certificate that matches the filters.',
    {
      ...filters,
      status: value('STATUS', 'valid, the default, or expired', ['valid', 'expired']),
      ...why,
      count: value('N', 'expected number: if another number matches, nothing is revoked'),
      'dry-run': flag('count, and revoke nothing'),
      ...YES,
    },
    revokeAll,
    {
      calls: ['POST /admin/certificates/revoke'],
      roles: ['admin', 'ra'],
      about: 'Needs at least one filter in addition to --status. Counts first, then asks for confirmation.',
    },
  ),
  adminCommand(
    'cert import',
    'Import a certificate that is missing from the store, so that it can be revoked.',
    {
      file: argument('the certificate in PEM'),
      'ca-label': required('LABEL', 'the CA that signed it'),
      ...FORMATS,
    },
    importCertificate,
    { calls: ['POST /admin/certificates'], roles: ['admin'] },
  ),
];

async function importCertificate(
  values: FormatValues & { readonly file: string; readonly 'ca-label': string },
  session: Session,
): Promise<number> {
  formatOf(values);
  const body = { pem: await readInput('FILE', values.file), ca: values['ca-label'] };
  printRecord(await session.client.record('POST', '/admin/certificates', { body }), values, session);
  return EXIT.ok;
}

interface SerialValues extends FormatValues {
  readonly serial: string;
  readonly 'ca-label': string | undefined;
}

async function showCertificate(values: SerialValues & { readonly pem: boolean }, session: Session): Promise<number> {
  formatOf(values);
  const path = `/admin/certificates/${encodeURIComponent(values.serial)}`;
  const record = await session.client.record('GET', path, { query: { ca: values['ca-label'] } });
  if (!values.pem) printRecord(record, values, session);
  else {
    const pem = textAt(record, 'pem');
    if (pem === '')
      throw new CommandError(
        'the store has no PEM of this certificate: it knows the certificate only from the audit log',
      );
    session.out(`${pem.trimEnd()}\n`);
  }
  return EXIT.ok;
}

interface WhyValues {
  readonly reason: string | undefined;
  readonly 'invalidity-date': string | undefined;
}

async function revokeCertificate(
  values: SerialValues & WhyValues & { readonly yes: boolean },
  session: Session,
): Promise<number> {
  formatOf(values);
  const body = whyOf(values, session.now());
  const path = `/admin/certificates/${encodeURIComponent(values.serial)}`;
  const query = { ca: values['ca-label'] };
  const record = await session.client.record('GET', path, { query });
  const about = inWords(record, ['serial', 'ca', 'subject', 'sans', 'status', 'not_after', 'requester']);
  await confirm({ about, question: 'Revoke this certificate?', yes: values.yes }, session);
  // The CA of the certificate shown.
  const ca = textAt(record, 'ca');
  printRecord(await session.client.record('POST', `${path}/revoke`, { query: { ca }, body }), values, session);
  return EXIT.ok;
}

function whyOf({ reason, 'invalidity-date': since }: WhyValues, now: number) {
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(since === undefined ? {} : { invalidity_date: readTime('--invalidity-date', since, now, -1) }),
  };
}

interface RevokeAllValues extends WhyValues {
  readonly status: string | undefined;
  readonly count: string | undefined;
  readonly 'dry-run': boolean;
  readonly yes: boolean;
}

const REVOKE = '/admin/certificates/revoke';

/** Counts, asks, then revokes exactly that many. @throws UsageError; CommandError: earlier revocations remain */
async function revokeAll(values: RevokeAllValues, session: Session): Promise<number> {
  const { client, out } = session;
  const meant = readCount('--count', values.count, 0);
  const why = whyOf(values, session.now());
  const filter = readFilters({ filters: CERTIFICATE_FILTERS, times: CERTIFICATE_TIMES }, { ...values }, session.now());
  if (Object.keys(filter).every((name) => name === 'status'))
    throw new UsageError('a filter is missing: --status alone would match every certificate');
  const count = Number(textAt(await client.record('POST', REVOKE, { body: { filter, dry_run: true } }), 'count'));
  out(`the filters match ${count} certificates\n`);
  if (meant !== undefined && meant !== count) throw new CommandError(`--count is ${meant}: nothing was revoked`);
  if (values['dry-run'] || count === 0) return EXIT.ok;
  await confirm({ question: `Revoke these ${count} certificates?`, yes: values.yes }, session);
  const shown = progress(session, { what: 'revoking', unit: 'certificates', total: count });
  let [left, revoked] = [count, 0];
  try {
    while (left > 0) {
      const result = await client.record('POST', REVOKE, { body: { filter, ...why, count: left } });
      const now = Number(textAt(result, 'revoked'));
      revoked += now;
      left = Number(textAt(result, 'remaining'));
      shown.update(revoked);
      if (now === 0) break;
    }
  } finally {
    shown.end();
    out(`${revoked} revoked\n`);
  }
  return left === 0 ? EXIT.ok : EXIT.failed;
}
