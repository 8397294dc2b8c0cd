/** `estuary admin request …` (approval queue) and `check` (dry run of a request). */
import { REQUEST_STATUSES } from '../../../store/request-state.ts';
import { argument, type Entry, EXIT, required, UsageError, value, type Values } from '../command.ts';
import { recordCommand } from './admin-command.ts';
import { readInput } from './connection.ts';
import { type JsonRecord, textAt } from './json.ts';
import { REQUESTS } from './output.ts';
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
};

/** What an administrator sees before the decision. */
const shown = {
  of: 'GET /admin/requests/{id}',
  shows: ['id', 'ca', 'operation', 'subject', 'sans', 'key_type', 'spki_sha256', 'requester', 'method', 'status'],
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
  recordCommand('request approve', 'Approve a request. The next poll gets the certificate.', {
    call: 'POST /admin/requests/{id}/approve',
    roles: deciding,
    options: { id },
    confirms: { ...shown, question: 'Approve this request?' },
  }),
  recordCommand('request reject', 'Reject a request. Polls get 403 with the reason.', {
    call: 'POST /admin/requests/{id}/reject',
    roles: deciding,
    options: { id, reason: required('TEXT', 'text for the client') },
    body: ({ reason }) => ({ reason }),
    confirms: { ...shown, question: 'Reject this request?' },
  }),
  recordCommand('check', 'Check what would happen to a request, without effect.', {
    call: 'POST /admin/check',
    roles: deciding,
    options: CHECK,
    about: 'The exit code is 1 if the request would be rejected.',
    body: async (values) => ({
      ca: values['ca-label'],
      csr: await readInput('--csr', values.csr),
      as: await senderOf(values),
    }),
    exitCode: (answer) => (textAt(answer, 'verdict') === 'refuse' ? EXIT.failed : EXIT.ok),
  }),
];

async function senderOf({ certificate, principal, device, ...values }: Values<typeof CHECK>): Promise<JsonRecord> {
  const given = Object.entries({ client_id: values['client-id'], principal, certificate, device }).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  const [sender] = given;
  if (sender === undefined || given.length > 1)
    throw new UsageError('the requester is missing: pass one of --client-id, --principal, --certificate and --device');
  const [how, who] = sender;
  return { [how]: how === 'certificate' ? await readInput('--certificate', who) : who };
}
