/** `estuary admin request …` (approval queue) and `check` (dry run of a request). */
import { REQUEST_STATUSES } from '../../../store/request-state.ts';
import {
  argument,
  type Command,
  CommandError,
  type Entry,
  EXIT,
  type Options,
  required,
  someArguments,
  UsageError,
  value,
  type Values,
} from '../command.ts';
import { adminCommand, confirm, FORMATS, queryOf, recordCommand, type Session, YES } from './admin-command.ts';
import { readInput } from './connection.ts';
import { type JsonRecord, textAt } from './json.ts';
import { csvOf, formatOf, inWords, printRecord, REQUESTS, tableOf } from './output.ts';
import { listCommand, pagesOf, recordsOf } from './list.ts';

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
const SHOWN = ['id', 'ca', 'operation', 'subject', 'sans', 'key_type', 'spki_sha256', 'requester', 'method', 'status'];

const filters = {
  'ca-label': value('LABEL', "a CA's label"),
  requester: value('NAME', 'the requester'),
  device: value('ID', 'ID of a registered device'),
  search: value('TEXT', 'a part of the subject, a name, the requester or the device, or the ID'),
};

const SELECTED = { id: someArguments('IDs of the requests, as in the list; or filters'), ...filters };

export const REQUEST_COMMANDS: readonly Entry[] = [
  listCommand('request list', 'List the requests that were queued for approval.', {
    roles: reading,
    filters: { status: value('STATUS', REQUEST_STATUSES.join(', '), REQUEST_STATUSES), ...filters },
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
  decisionCommand('approve', 'Approve requests. The next poll of each gets the certificate.', {}),
  decisionCommand('reject', 'Reject requests. Polls get 403 with the reason.', {
    reason: required('TEXT', 'text for the client'),
  }),
  recordCommand('check', 'Check what would happen to a request, without effect.', {
    call: 'POST /admin/check',
    roles: deciding,
    options: CHECK,
    about: 'The exit code is 1 if the request would be rejected.',
    body: async (values) => ({
      ca: values['ca-label'],
      csr: await readInput('--csr', values.csr, 'CERTIFICATE REQUEST'),
      as: await senderOf(values),
    }),
    exitCode: (answer) => (textAt(answer, 'verdict') === 'refuse' ? EXIT.failed : EXIT.ok),
  }),
];

type Selected = Values<typeof SELECTED & typeof YES & typeof FORMATS> & { readonly reason?: string };

/** Decides the requests with the given IDs, or all pending ones that the filters find. */
function decisionCommand(decision: 'approve' | 'reject', summary: string, more: Options): Command {
  const run = async (values: Selected, session: Session): Promise<number> => {
    const format = formatOf(values);
    const requests = await selected(values, session);
    const [first, ...others] = requests;
    if (first === undefined) throw new CommandError('no pending request matches');
    const isOne = others.length === 0;
    const verb = decision === 'approve' ? 'Approve' : 'Reject';
    const question = isOne ? `${verb} this request?` : `${verb} these ${requests.length} requests?`;
    const about = isOne ? inWords(first, SHOWN) : tableOf(REQUESTS, requests, session);
    await confirm({ about, question, yes: values.yes }, session);
    const decided: JsonRecord[] = [];
    const sent = values.reason === undefined ? {} : { body: { reason: values.reason } };
    for (const request of requests)
      try {
        const path = `${pathOf(textAt(request, 'id'))}/${decision}`;
        decided.push(await session.client.record('POST', path, sent));
      } catch (error) {
        if (isOne || !(error instanceof CommandError)) throw error;
        session.err(`${textAt(request, 'id')}: ${error.message}\n`);
      }
    const [only] = decided;
    if (isOne && only !== undefined) printRecord(only, values, session);
    else if (format === 'json') session.out(decided.map((request) => `${JSON.stringify(request)}\n`).join(''));
    else if (format === 'csv') session.out(csvOf(decided));
    else
      session.out(
        `${decided.length} of ${requests.length} requests: ${decision === 'approve' ? 'approved' : 'rejected'}\n`,
      );
    return decided.length === requests.length ? EXIT.ok : EXIT.failed;
  };
  return adminCommand(`request ${decision}`, summary, {
    options: { ...SELECTED, ...more, ...YES, ...FORMATS },
    run,
    calls: [`POST /admin/requests/{id}/${decision}`, 'GET /admin/requests/{id}', 'GET /admin/requests'],
    roles: deciding,
    about: 'Shows the requests and asks before the decision.',
  });
}

const pathOf = (request: string): string => `/admin/requests/${encodeURIComponent(request)}`;

/** @throws UsageError without IDs and filters, and with both */
async function selected(values: Values<typeof SELECTED>, session: Session): Promise<readonly JsonRecord[]> {
  const query = queryOf(filters, values, session.now());
  const isFiltered = Object.keys(query).length > 0;
  if (isFiltered === values.id.length > 0)
    throw new UsageError(
      isFiltered ? 'IDs and filters exclude each other' : 'ID is missing (or a filter, such as --requester)',
    );
  if (isFiltered) return recordsOf(pagesOf('/admin/requests', { ...query, status: 'pending' }, Infinity, session));
  const found: JsonRecord[] = [];
  for (const request of new Set(values.id)) found.push(await session.client.record('GET', pathOf(request)));
  return found;
}

async function senderOf({ certificate, principal, device, ...values }: Values<typeof CHECK>): Promise<JsonRecord> {
  const senders = { client_id: values['client-id'], principal, certificate, device };
  if (Object.values(senders).filter((sender) => sender !== undefined).length !== 1)
    throw new UsageError('the requester is missing: pass one of --client-id, --principal, --certificate and --device');
  if (certificate === undefined) return senders;
  return { certificate: await readInput('--certificate', certificate, 'CERTIFICATE') };
}
