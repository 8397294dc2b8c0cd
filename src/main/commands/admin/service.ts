/** `estuary admin ca|lockout|audit|status|reload …`. */
import { AUDIT_TYPES } from '../../../audit/event.ts';
import { argument, CommandError, type Entry, EXIT, flag, time, value } from '../command.ts';
import { lookOf, painted, printable } from '../text-table.ts';
import { adminCommand, FORMATS, recordCommand, type Session } from './admin-command.ts';
import { rolesInWords } from './client.ts';
import { isRecord, type JsonRecord, textAt } from './json.ts';
import { AUDIT, CAS, cell, colorOf, LOCKOUTS, RECEIVERS } from './output.ts';
import { listCommand } from './list.ts';

const operating = ['admin', 'operator'];
const label = argument('label of the CA, as in the list');

export const SERVICE_COMMANDS: readonly Entry[] = [
  adminCommand('status', 'Show whether the server is alive and ready, its components, and the caller.', {
    options: { json: FORMATS.json },
    run: status,
    calls: ['GET /healthz', 'GET /readyz', 'GET /admin/session'],
    roles: [],
    about: 'The exit code is 3 if the server is not ready. Without a token or certificate, the caller is not shown.',
  }),
  recordCommand('session', 'Show the caller, its method of authentication, its roles and their labels.', {
    call: 'GET /admin/session',
    roles: [],
    options: {},
  }),
  recordCommand('reload', 'Reload the configuration, completely or not at all.', {
    call: 'POST /admin/reload',
    roles: operating,
    options: { 'dry-run': flag('report what would change, and change nothing') },
  }),
  listCommand('ca list', 'List the CAs with their further labels and their health.', {
    roles: operating,
    path: '/admin/cas',
    kind: CAS,
    order: 'asc',
    csv: false,
  }),
  recordCommand('ca show', 'Show one CA with its chain.', {
    call: 'GET /admin/cas/{label}',
    roles: operating,
    options: { label },
  }),
  recordCommand('ca revocation', 'Show the CRL and the OCSP responder of a CA.', {
    call: 'GET /admin/cas/{label}/revocation',
    roles: operating,
    options: { label },
  }),
  recordCommand('ca rollover', 'Show who still needs a former key of a CA, and whether it can be retired.', {
    call: 'GET /admin/cas/{label}/rollover',
    roles: ['admin', 'ra', 'auditor', 'operator'],
    options: { label },
  }),
  recordCommand('ca crl', 'Sign the CRL of a CA now.', {
    call: 'POST /admin/cas/{label}/crl',
    roles: operating,
    options: { label },
  }),
  listCommand('notification list', 'List the receivers of notifications, and how the delivery to them is.', {
    roles: operating,
    path: '/admin/notifications',
    kind: RECEIVERS,
    order: 'asc',
    csv: false,
  }),
  recordCommand('notification test', 'Send a sample to a receiver of notifications.', {
    call: 'POST /admin/notifications/{name}/test',
    roles: operating,
    options: { name: argument('as in the configuration') },
  }),
  listCommand('lockout list', 'List the lockouts.', {
    roles: operating,
    path: '/admin/lockouts',
    kind: LOCKOUTS,
    order: 'asc',
  }),
  recordCommand('lockout clear', 'Remove a lockout.', {
    call: 'DELETE /admin/lockouts/{key}',
    roles: operating,
    options: { lockout: argument('key from the list, such as address:192.0.2.7 or username:device-1') },
    done: ({ lockout }) => `removed the lockout of ${lockout}`,
  }),
  listCommand('audit list', 'List the audit records.', {
    roles: ['admin', 'auditor'],
    filters: {
      since: time('from this time on, or the last period, such as 1h', -1),
      until: time('up to this time', -1),
      type: value('TYPE', 'such as certificate.issued', AUDIT_TYPES),
      subject: value('TEXT', 'a part of the subject'),
      'ca-label': value('LABEL', "a CA's label"),
      serial: value('HEX', 'serial number of a certificate'),
      'request-id': value('ID', 'ID of a request'),
    },
    path: '/admin/audit',
    kind: AUDIT,
  }),
  adminCommand('metrics', 'Print the metrics that Prometheus reads.', {
    options: {},
    run: async (_values, { client, out }) => {
      out(await client.text('GET', '/metrics', { accept: 'text/plain' }));
      return EXIT.ok;
    },
    calls: ['GET /metrics'],
    roles: operating,
  }),
  adminCommand('openapi', 'Print the OpenAPI 3.1 description of the admin API.', {
    options: {},
    run: async (_values, { client, out }) => {
      out(`${JSON.stringify(await client.record('GET', '/admin/openapi.json'), null, 2)}\n`);
      return EXIT.ok;
    },
    calls: ['GET /admin/openapi.json'],
    roles: [],
  }),
];

/** @throws CommandError if the server is unreachable */
async function status({ json }: { readonly json: boolean }, session: Session): Promise<number> {
  const { client, out } = session;
  const alive = await client.record('GET', '/healthz');
  const ready = await readiness(session);
  const caller = client.connection.credential === undefined ? undefined : await client.record('GET', '/admin/session');
  if (json) {
    const answer = { alive: alive['status'] === 'ok', ...ready, caller: caller ?? null };
    out(`${JSON.stringify(answer, null, 2)}\n`);
  } else {
    const look = lookOf(session);
    const line = (name: string, text: string): void =>
      out(`${printable(name).padEnd(12)}  ${painted(printable(text), colorOf(text), look)}\n`);
    line('server', client.connection.origin);
    line('status', textAt(ready, 'status'));
    for (const [part, health] of Object.entries(isRecord(ready['parts']) ? ready['parts'] : {}))
      line(part, cell(health));
    if (ready['message'] !== undefined) line('why', cell(ready['message']));
    if (caller !== undefined) {
      line('caller', textAt(caller, 'subject'));
      line('method', textAt(caller, 'method'));
      line('roles', rolesInWords(caller) || '-');
    }
  }
  return ready['status'] === 'down' ? EXIT.unavailable : EXIT.ok;
}

async function readiness({ client }: Session): Promise<JsonRecord> {
  try {
    return await client.record('GET', '/readyz');
  } catch (error) {
    if (!(error instanceof CommandError) || !error.message.includes('NOT_READY')) throw error;
    return { status: 'down', parts: {}, message: error.message };
  }
}
