/** `estuary admin ca|lockout|audit|status|reload …`: the service itself. */
import { AUDIT_TYPES } from '../../../../audit/event.ts';
import { argument, flag, value, type Entry } from '../../command.ts';
import { adminCommand, FORMATS } from '../admin-command.ts';
import { AUDIT, CAS, LOCKOUTS } from '../kinds.ts';
import { LIST, lists } from '../list.ts';
import { inPath, records } from '../show.ts';

const operating = ['admin', 'operator'];

export const SERVICE_COMMANDS: readonly Entry[] = [
  adminCommand(
    'status',
    'Whether the server is alive and ready, with its parts; and who is calling.',
    { json: FORMATS.json },
    () => import('../status.ts'),
    {
      calls: ['GET /healthz', 'GET /readyz', 'GET /admin/session'],
      roles: [],
      about:
        'Exit code 3 where it is not ready. Works without token or certificate, too; then it does not tell who is calling.',
    },
  ),
  adminCommand(
    'session',
    'Who is calling, and what the caller may do.',
    FORMATS,
    () => Promise.resolve(records(() => ({ path: '/admin/session' }))),
    { calls: ['GET /admin/session'], roles: [] },
  ),
  adminCommand(
    'reload',
    'Read the configuration again, and bring it into force wholly or not at all.',
    { 'dry-run': flag('say what would change, and change nothing'), ...FORMATS },
    () =>
      Promise.resolve(
        records((values) => ({
          method: 'POST',
          path: '/admin/reload',
          query: { dry_run: values['dry-run'] ? 'true' : undefined },
        })),
      ),
    { calls: ['POST /admin/reload'], roles: operating },
  ),
  adminCommand(
    'ca list',
    'The CAs, with their further labels and their health.',
    LIST,
    () => Promise.resolve(lists({ path: '/admin/cas', kind: CAS, filters: {}, csv: false })),
    { calls: ['GET /admin/cas'], roles: operating },
  ),
  adminCommand(
    'ca show',
    'One CA, with its chain.',
    { label: argument('as the list shows it'), ...FORMATS },
    () => Promise.resolve(records(({ label }) => ({ path: `/admin/cas/${inPath(label)}` }))),
    { calls: ['GET /admin/cas/{label}'], roles: operating },
  ),
  adminCommand(
    'ca revocation',
    'The CRL and the OCSP responder of a CA.',
    { label: argument('as the list shows it'), ...FORMATS },
    () => Promise.resolve(records(({ label }) => ({ path: `/admin/cas/${inPath(label)}/revocation` }))),
    { calls: ['GET /admin/cas/{label}/revocation'], roles: operating },
  ),
  adminCommand(
    'lockout list',
    'Who is locked out.',
    LIST,
    () => Promise.resolve(lists({ path: '/admin/lockouts', kind: LOCKOUTS, filters: {}, csv: true })),
    { calls: ['GET /admin/lockouts'], roles: operating },
  ),
  adminCommand(
    'lockout clear',
    'End a lockout.',
    { lockout: argument('as the list shows it: address:192.0.2.7, username:device-1') },
    () => import('../lockout-clear.ts'),
    { calls: ['DELETE /admin/lockouts/{key}'], roles: operating },
  ),
  adminCommand(
    'audit list',
    'The audit records.',
    {
      since: value('TIME', 'of this time and later; 1h: of the last hour'),
      until: value('TIME', 'of this time and before'),
      type: value('TYPE', 'such as certificate.issued', AUDIT_TYPES),
      subject: value('TEXT', 'a part of who it was'),
      'ca-label': value('LABEL', "a CA's label"),
      serial: value('HEX', 'of a certificate'),
      'request-id': value('ID', 'of a request'),
      ...LIST,
    },
    () =>
      Promise.resolve(
        lists({
          path: '/admin/audit',
          kind: AUDIT,
          filters: {
            since: 'since',
            until: 'until',
            type: 'type',
            subject: 'subject',
            'ca-label': 'ca',
            serial: 'serial',
            'request-id': 'request_id',
          },
          times: { since: -1, until: -1 },
          csv: true,
        }),
      ),
    { calls: ['GET /admin/audit'], roles: ['admin', 'auditor'] },
  ),
  adminCommand('metrics', 'Print the metrics that Prometheus reads.', {}, () => import('../metrics.ts'), {
    calls: ['GET /metrics'],
    roles: operating,
  }),
  adminCommand('openapi', 'The OpenAPI 3.1 description of the admin API.', {}, () => import('../openapi.ts'), {
    calls: ['GET /admin/openapi.json'],
    roles: [],
  }),
];
