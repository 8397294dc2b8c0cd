/** `estuary admin request …` (approval queue) and `check` (dry run of a request). */
import { REQUEST_STATUSES } from '../../../store/request-state.ts';
import { argument, type Entry, EXIT, required, UsageError, value, type Values } from '../command.ts';
import { adminCommand, confirm, FORMATS, recordCommand, type Session, YES } from './admin-command.ts';
import { readInput } from './connection.ts';
import { textAt } from './json.ts';
import { formatOf, type FormatValues, inWords, printRecord, REQUESTS } from './output.ts';
import { listCommand } from './list.ts';

const id = argument('ID of the request, as in the list');
const reading = ['admin', 'ra', 'auditor'];
const deciding = ['admin', 'ra'];

const CHECK = {
  csr: required('FILE', 'PKCS #10, PEM'),
  'ca-label': required('LABEL', 'the CA that would get it'),
  'client-id': value('ID', 'as the holder of a one-time password for this client_id'),
  principal: value('NAME', 'as this Kerberos principal with its realm'),
  certificate: value('FILE', 'as the holder of this certificate: PEM, then its intermediates'),
  device: value('ID', 'as this registered device, with any method of authentication'),
  ...FORMATS,
};

export const REQUEST_COMMANDS: readonly Entry[] = [
  listCommand('request list', 'List the requests that were queued for approval.', {
    roles: reading,
    filters: {
      status: value('STATUS', REQUEST_STATUSES.join(', '), REQUEST_STATUSES),
      'ca-label': value('LABEL', "a CA's label"),
      requester: value('NAME', 'the requester'),
      device: value('ID', 'ID of a registered device'),
      search: value('TEXT', 'a part of the subject, a name, the requester or the device, or the ID'),
    },
    path: '/admin/requests',
    kind: REQUESTS,
    csv: true,
  }),
  recordCommand('request show', 'Show one request with its CSR.', {
    call: 'GET /admin/requests/{id}',
    roles: reading,
    options: { id },
  }),
  recordCommand('request check', 'Check what an approval of a request would lead to, without effect.', {
    call: 'GET /admin/requests/{id}/check',
    roles: reading,
    options: { id },
  }),
  adminCommand('request approve', 'Approve a request. The next poll gets the certificate.', {
    options: { id, ...YES, ...FORMATS },
    run: (values, session) => decide(values, { call: 'approve', question: 'Approve this request?' }, session),
    calls: ['POST /admin/requests/{id}/approve', 'GET /admin/requests/{id}'],
    roles: deciding,
  }),
  adminCommand('request reject', 'Reject a request. Polls get 403 with the reason.', {
    options: { id, reason: required('TEXT', 'text for the client'), ...YES, ...FORMATS },
    run: (values, session) =>
      decide(values, { call: 'reject', question: 'Reject this request?', body: { reason: values.reason } }, session),
    calls: ['POST /admin/requests/{id}/reject', 'GET /admin/requests/{id}'],
    roles: deciding,
  }),
  adminCommand('check', 'Check what would happen to a request, without effect.', {
    options: CHECK,
    run: check,
    calls: ['POST /admin/check'],
    roles: deciding,
    about: 'The exit code is 1 if the request would be rejected.',
  }),
];

interface DecideValues extends FormatValues {
  readonly id: string;
  readonly yes: boolean;
}

const SHOWN = ['id', 'ca', 'operation', 'subject', 'sans', 'key_type', 'spki_sha256', 'requester', 'method', 'status'];

async function decide(
  values: DecideValues,
  {
    call,
    question,
    body,
  }: { readonly call: string; readonly question: string; readonly body?: { readonly reason: string } },
  session: Session,
): Promise<number> {
  formatOf(values);
  const path = `/admin/requests/${encodeURIComponent(values.id)}`;
  const request = await session.client.record('GET', path);
  await confirm({ about: inWords(request, SHOWN), question, yes: values.yes }, session);
  const decided = await session.client.record('POST', `${path}/${call}`, body === undefined ? {} : { body });
  printRecord(decided, values, session);
  return EXIT.ok;
}

async function check(values: Values<typeof CHECK>, session: Session): Promise<number> {
  formatOf(values);
  const { csr, certificate, principal, device } = values;
  const given = Object.entries({ client_id: values['client-id'], principal, certificate, device }).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  const [sender] = given;
  if (sender === undefined || given.length > 1)
    throw new UsageError('the requester is missing: pass one of --client-id, --principal, --certificate and --device');
  const [how, who] = sender;
  const as = { [how]: how === 'certificate' ? await readInput('--certificate', who) : who };
  const body = { ca: values['ca-label'], csr: await readInput('--csr', csr), as };
  const answer = await session.client.record('POST', '/admin/check', { body });
  printRecord(answer, values, session);
  return textAt(answer, 'verdict') === 'refuse' ? EXIT.failed : EXIT.ok;
}
