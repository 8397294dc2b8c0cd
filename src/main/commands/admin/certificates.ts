/** `estuary admin cert …`: issued certificates. */
import { REVOCATION_REASONS } from '../../../pki/x509/crl.ts';
import {
  argument,
  CommandError,
  type Entry,
  EXIT,
  flag,
  required,
  time,
  UsageError,
  value,
  type Values,
} from '../command.ts';
import { progress } from '../progress.ts';
import { adminCommand, confirm, FORMATS, queryOf, recordCommand, type Session, YES } from './admin-command.ts';
import { readInput } from './connection.ts';
import { type JsonRecord, textAt } from './json.ts';
import { CERTIFICATES, inWords } from './output.ts';
import { listCommand } from './list.ts';
import { readCount, readPeriod } from './times.ts';

const serial = argument('serial number in hex, as in the list or with colons');
const caLabel = value('LABEL', 'the CA, if several CAs used the serial number');
const reading = ['admin', 'ra', 'auditor'];
const changing = ['admin', 'ra'];

export const filters = {
  'ca-label': value('LABEL', "a CA's label"),
  label: value('LABEL', 'a further label of a CA: certificates requested there'),
  subject: value('TEXT', 'a part of the subject'),
  san: value('TEXT', 'a part of one of the names, as in records (DNS:a)'),
  serial: value('HEX', 'the serial number'),
  'fingerprint-sha256': value('HEX', 'SHA-256 of the certificate, with or without colons'),
  requester: value('NAME', 'the requester'),
  device: value('ID', 'certificates of this registered device'),
  'issued-after': time('issued after this time, or within this period: 7d', -1),
  'expires-before': time('expires before this time, or within this period: 30d', 1),
};

const why = {
  reason: value('REASON', `${REVOCATION_REASONS.join(', ')} (default unspecified)`, REVOCATION_REASONS),
  'invalidity-date': time('when the key was compromised: a time, or a period such as 2d', -1),
};

/** One certificate. */
const chosen = { serial, 'ca-label': caLabel };
const caOf = (values: Values<typeof chosen>) => ({ ca: values['ca-label'] });

const matching = { ...filters, status: value('STATUS', 'valid, the default, or expired', ['valid', 'expired']) };
const REVOKE_ALL = {
  ...matching,
  ...why,
  count: value('N', 'expected number: if another number matches, nothing is revoked'),
  'dry-run': flag('count, and revoke nothing'),
  ...YES,
};

export const CERTIFICATE_COMMANDS: readonly Entry[] = [
  listCommand('cert list', 'List the issued certificates.', {
    roles: reading,
    filters: { ...filters, status: value('STATUS', 'valid, revoked or expired', ['valid', 'revoked', 'expired']) },
    path: '/admin/certificates',
    kind: CERTIFICATES,
  }),
  recordCommand('cert show', 'Show one certificate with its PEM.', {
    call: 'GET /admin/certificates/{serial}',
    roles: reading,
    options: { ...chosen, pem: flag('print only the PEM'), ...FORMATS },
    query: caOf,
    done: ({ pem }, record) => (pem ? pemOf(record) : undefined),
  }),
  recordCommand('cert chain', 'Show the chain of a certificate, up to the root.', {
    call: 'GET /admin/certificates/{serial}/chain',
    roles: reading,
    options: chosen,
  }),
  recordCommand('cert revoke', 'Revoke a certificate. It no longer authenticates.', {
    call: 'POST /admin/certificates/{serial}/revoke',
    roles: changing,
    options: { ...chosen, ...why },
    about: 'Only certificateHold can be reversed, with cert release.',
    body: (values, now) => queryOf(why, values, now),
    // The CA of the certificate shown.
    query: (values, _now, shown) => (shown === undefined ? caOf(values) : { ca: textAt(shown, 'ca') }),
    confirms: {
      of: 'GET /admin/certificates/{serial}',
      about: (shown) => inWords(shown, ['serial', 'ca', 'subject', 'sans', 'status', 'not_after', 'requester']),
      question: 'Revoke this certificate?',
    },
  }),
  recordCommand('cert release', 'Release a certificate from hold. It is valid again.', {
    call: 'POST /admin/certificates/{serial}/release',
    roles: changing,
    options: chosen,
  }),
  recordCommand('cert rescue', 'Let a certificate renew once more although it has expired.', {
    call: 'POST /admin/certificates/{serial}/rescue',
    roles: changing,
    options: {
      serial,
      for: required('PERIOD', 'how long, from now or from its expiry on: 90m, 12h, 2d'),
      'ca-label': caLabel,
      reason: value('TEXT', 'for the audit log'),
    },
    query: caOf,
    body: ({ for: period, reason }) => ({ for_seconds: readPeriod('--for', period), reason }),
  }),
  recordCommand('cert end-rescue', 'End the pass of a certificate for one more renewal.', {
    call: 'DELETE /admin/certificates/{serial}/rescue',
    roles: changing,
    options: chosen,
    done: (values) => `certificate ${values.serial}: no renewal after its expiry`,
  }),
  adminCommand('cert revoke-all', 'Revoke every certificate that matches the filters.', {
    options: REVOKE_ALL,
    run: revokeAll,
    calls: ['POST /admin/certificates/revoke'],
    roles: changing,
    about: 'Needs at least one filter in addition to --status. Counts first, then asks for confirmation.',
  }),
  recordCommand('cert import', 'Import a certificate that is missing from the store, so that it can be revoked.', {
    call: 'POST /admin/certificates',
    roles: ['admin'],
    options: { file: argument('the certificate in PEM'), 'ca-label': required('LABEL', 'the CA that signed it') },
    body: async (values) => ({ pem: await readInput('FILE', values.file, 'CERTIFICATE'), ca: values['ca-label'] }),
  }),
];

function pemOf(certificate: JsonRecord): string {
  const pem = textAt(certificate, 'pem');
  if (pem === '')
    throw new CommandError(
      'the store has no PEM of this certificate: it knows the certificate only from the audit log',
    );
  return pem.trimEnd();
}

const REVOKE_CALL = '/admin/certificates/revoke';

/** Counts, asks, then revokes exactly that many. @throws UsageError; CommandError: earlier revocations remain */
async function revokeAll(values: Values<typeof REVOKE_ALL>, session: Session): Promise<number> {
  const { client, out } = session;
  const meant = readCount('--count', values.count, 0);
  const reason = queryOf(why, values, session.now());
  const filter = queryOf(matching, values, session.now());
  if (Object.keys(filter).every((name) => name === 'status'))
    throw new UsageError('a filter is missing: --status alone would match every certificate');
  const count = Number(textAt(await client.record('POST', REVOKE_CALL, { body: { filter, dry_run: true } }), 'count'));
  out(`the filters match ${count} certificates\n`);
  if (meant !== undefined && meant !== count) throw new CommandError(`--count is ${meant}: nothing was revoked`);
  if (values['dry-run'] || count === 0) return EXIT.ok;
  await confirm({ question: `Revoke these ${count} certificates?`, yes: values.yes }, session);
  const shown = progress(session, { what: 'revoking', unit: 'certificates', total: count });
  let [left, revoked] = [count, 0];
  try {
    while (left > 0) {
      const result = await client.record('POST', REVOKE_CALL, { body: { filter, ...reason, count: left } });
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
