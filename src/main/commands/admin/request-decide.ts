/** `admin request approve` and `reject`: the request is shown, and decided about. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';
import { confirm } from './confirm.ts';
import { inWords } from './kinds.ts';
import { formatOf, printRecord } from './output.ts';
import { inPath } from './show.ts';

interface DecideValues {
  readonly id: string;
  readonly yes: boolean;
  readonly json: boolean;
  readonly csv: boolean;
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
  const path = `/admin/requests/${inPath(values.id)}`;
  const request = await session.client.record('GET', path);
  await confirm({ about: inWords(request, SHOWN), question, yes: values.yes }, session);
  const decided = await session.client.record('POST', `${path}/${call}`, body === undefined ? {} : { body });
  printRecord(decided, values, session);
  return EXIT.ok;
}

export const approve = {
  run: (values: DecideValues, session: Session): Promise<number> =>
    decide(values, { call: 'approve', question: 'Approve this request?' }, session),
};

export const reject = {
  run: (values: DecideValues & { readonly reason: string }, session: Session): Promise<number> =>
    decide(values, { call: 'reject', question: 'Reject this request?', body: { reason: values.reason } }, session),
};
