import { Type } from '@fastify/type-provider-typebox';
import type { ReloadReport } from '../../config/diff.ts';
import { conflict } from '../../errors.ts';
import { accessEvent, actor } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { route } from './route.ts';
import { Bool, described, flag, nullable, Text, Texts, Timestamp, titled } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';
import type { ServiceState } from '../../service-state-metrics.ts';

/** Properties of a certificate that the service needs. */
export const CERTIFICATE_IN_USE = {
  use: Text('`tls`, `ca`, `client_anchor` …, as in the metrics.'),
  ca: nullable(Text('The label of the CA that needs it.')),
  subject: Type.String(),
  serial: Type.String(),
  not_after: Timestamp(),
};

export const certificateInUse = ({ use, ca, subject, serial, notAfter }: ServiceState['certificates'][number]) => ({
  use,
  ca: ca === '' ? null : ca,
  subject,
  serial,
  not_after: formatTimestamp(notAfter),
});

/** The last reload; null: none since the start. */
export const reloadRecord = (last: ServiceState['lastReload']) =>
  last === undefined ? null : { at: formatTimestamp(last.at), ok: last.ok };

const KEYS = (description: string) => Texts(`${description}, such as \`ca[devices].profile.validity_days\`.`);

const Report = titled('ReloadReport', 'The changes of a reload, or of a dry run.', {
  dry_run: Bool('Nothing has changed.'),
  changed: KEYS('Changed keys that take effect immediately'),
  needs_restart: KEYS('Changed keys that take effect at the next start'),
  certificates: Type.Array(
    Type.Object({
      ...CERTIFICATE_IN_USE,
      new: Bool('true: it was not in force before.'),
    }),
    { description: 'The certificates in force afterwards.' },
  ),
  warnings: Type.Array(Type.Object({ key: Type.String(), message: Type.String() }), {
    description: 'Allowed but unsafe settings.',
  }),
  faults: Type.Array(Type.Object({ key: Type.String(), message: Type.String() }), {
    description: 'Files and certificates that cannot be used. They affect only what needs them.',
  }),
});

const Configuration = titled('Configuration', 'The configuration in force.', {
  keys: Type.Array(
    Type.Object(
      {
        key: Text('Such as `ca[devices].profile.validity_days`.'),
        value: Type.Any({ description: 'A string, number, boolean or list; `[secret]` for a secret.' }),
        live: Bool('true: a reload applies a change; false: the next start does.'),
      },
      { title: 'ConfigurationKey' },
    ),
    { description: 'Every key with its value or default, in the order of the reference.' },
  ),
  reload: nullable(
    described('The last one; null: none since the start.', {
      at: Timestamp(),
      ok: Bool('false: the configuration in force differs from the file.'),
    }),
  ),
});

/** `POST /admin/reload`, which does what SIGHUP does, with a response, and `GET /admin/configuration`. */
export function registerReload(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'POST /admin/reload',
    access: ['operator'],
    summary: 'Reload the configuration, completely or not at all',
    tag: 'health',
    query: {
      dry_run: flag('Report what would change, and change nothing.'),
    },
    response: { 200: Report },
    errors: [409],
    handler: async (request) => {
      const dryRun = request.query.dry_run === 'true';
      if (!dryRun) await deps.store.audit([accessEvent(request, 'success', 'a reload')]);
      const outcome = await deps.reload({ dryRun, by: actor(request) });
      if (!outcome.ok) throw outcome.unavailable ?? conflict('RELOAD_FAILED', outcome.reason);
      return { dry_run: dryRun, ...inWords(outcome.report) };
    },
  });

  route(app, {
    call: 'GET /admin/configuration',
    access: ['operator'],
    summary: 'Get the configuration in force, without its secrets',
    description: '`POST /admin/reload?dry_run=true` reports what the file would change.',
    tag: 'health',
    response: { 200: Configuration },
    handler: () => ({ keys: deps.configuration(), reload: reloadRecord(deps.lastReload()) }),
  });
}

function inWords({ changed, needsRestart, certificates, warnings, faults }: ReloadReport) {
  return {
    changed,
    needs_restart: needsRestart,
    certificates: certificates.map((certificate) => ({ ...certificateInUse(certificate), new: certificate.isNew })),
    warnings,
    faults,
  };
}
