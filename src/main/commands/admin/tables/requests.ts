/** `estuary admin request …` and `check`: what waits for approval, and what would become of a request. */
import { REQUEST_STATUSES } from '../../../../store/request-state.ts';
import { argument, required, value, type Entry } from '../../command.ts';
import { adminCommand, FORMATS, YES } from '../admin-command.ts';
import { REQUESTS } from '../kinds.ts';
import { LIST, lists } from '../list.ts';
import { inPath, records } from '../show.ts';

const id = argument('of the request, as the list shows it');
const reading = ['admin', 'ra', 'auditor'];
const deciding = ['admin', 'ra'];

export const REQUEST_COMMANDS: readonly Entry[] = [
  adminCommand(
    'request list',
    'The requests that were queued for approval.',
    {
      status: value('STATUS', REQUEST_STATUSES.join(', '), REQUEST_STATUSES),
      'ca-label': value('LABEL', "a CA's label"),
      requester: value('NAME', 'who asks'),
      device: value('ID', 'of a registered device'),
      ...LIST,
    },
    () =>
      Promise.resolve(
        lists({
          path: '/admin/requests',
          kind: REQUESTS,
          filters: { status: 'status', 'ca-label': 'ca', requester: 'requester', device: 'device' },
          csv: true,
        }),
      ),
    { calls: ['GET /admin/requests'], roles: reading },
  ),
  adminCommand(
    'request show',
    'One request, with its CSR.',
    { id, ...FORMATS },
    () => Promise.resolve(records(({ id: one }) => ({ path: `/admin/requests/${inPath(one)}` }))),
    { calls: ['GET /admin/requests/{id}'], roles: reading },
  ),
  adminCommand(
    'request check',
    'What the approval of a request would come to; nothing happens.',
    { id, ...FORMATS },
    () => Promise.resolve(records(({ id: one }) => ({ path: `/admin/requests/${inPath(one)}/check` }))),
    { calls: ['GET /admin/requests/{id}/check'], roles: reading },
  ),
  adminCommand(
    'request approve',
    'Approve a request: the next poll gets its certificate.',
    { id, ...YES, ...FORMATS },
    async () => (await import('../request-decide.ts')).approve,
    { calls: ['POST /admin/requests/{id}/approve', 'GET /admin/requests/{id}'], roles: deciding },
  ),
  adminCommand(
    'request reject',
    'Reject a request: its polls are answered 403 with the reason.',
    { id, reason: required('TEXT', 'what the client is told'), ...YES, ...FORMATS },
    async () => (await import('../request-decide.ts')).reject,
    { calls: ['POST /admin/requests/{id}/reject', 'GET /admin/requests/{id}'], roles: deciding },
  ),
  adminCommand(
    'check',
    'What would become of a request; nothing does.',
    {
      csr: required('FILE', 'PKCS #10, PEM'),
      'ca-label': required('LABEL', 'the CA that it would go to'),
      'client-id': value('ID', 'as whoever has a one-time password that was made for it'),
      principal: value('NAME', 'as a Kerberos principal, with its realm'),
      certificate: value('FILE', 'as the holder of this certificate, PEM, with those above it'),
      device: value('ID', 'as a registered device, however it authenticates'),
      ...FORMATS,
    },
    () => import('../check.ts'),
    { calls: ['POST /admin/check'], roles: deciding, about: 'Exit code 1 where it would be refused.' },
  ),
];
