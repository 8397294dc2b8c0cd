import { Type } from '@fastify/type-provider-typebox';
import type { HealthReport } from '../../ca/driver.ts';
import { unavailable } from '../../errors.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health-monitor.ts';
import { ErrorBody, oneOf } from './schemas.ts';

const PartHealth = oneOf(['ok', 'degraded', 'down']);

/** `GET /healthz` and `GET /readyz`: for load balancers and orchestrators, without authentication. */
export function registerHealth(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  const logChange = changeLog(deps.log);
  app.get(
    '/healthz',
    {
      config: { access: 'public' },
      schema: {
        summary: 'Check whether the process is alive',
        tags: ['health'],
        security: [],
        response: { 200: Type.Object({ status: oneOf(['ok']) }, { description: 'Alive.' }) },
      },
    },
    () => ({ status: 'ok' as const }),
  );

  app.get(
    '/readyz',
    {
      config: { access: 'public' },
      schema: {
        summary: 'Check whether the store and every CA are usable',
        tags: ['health'],
        security: [],
        response: {
          200: Type.Object(
            { status: oneOf(['ok', 'degraded']), parts: Type.Record(Type.String(), PartHealth) },
            {
              description:
                'The service is usable. `parts` names `store`, `ca:` with the label of each CA, and with PostgreSQL `clock`. After a failed reload it also names ' +
                '`reload`, until a reload succeeds.',
            },
          ),
          503: Type.Object(ErrorBody.properties, { description: 'The message names the parts that are down.' }),
        },
      },
    },
    async () => {
      const reports = await partReports(deps, monitor);
      for (const [part, report] of reports) logChange(part, report);
      const parts = new Map(reports.map(([part, { health }]) => [part, health]));
      const down = [...parts].filter(([, health]) => health === 'down').map(([part]) => part);
      if (down.length > 0) throw unavailable('NOT_READY', `not ready: ${down.join(', ')}`);
      // The old configuration stays in force: a load balancer must not remove this server.
      if (deps.condition().reloadFailed) parts.set('reload', 'degraded');
      const status: 'ok' | 'degraded' =
        parts.size > reports.length || [...parts.values()].includes('degraded') ? 'degraded' : 'ok';
      return { status, parts: Object.fromEntries(parts) };
    },
  );
}

/** The state of each part by its public name. */
async function partReports(
  { cas, clockSkew }: AdminDependencies,
  monitor: HealthMonitor,
): Promise<(readonly [part: string, report: HealthReport])[]> {
  const reports = await Promise.all([
    monitor.store().then((report) => ['store', report] as const),
    ...cas.issuers.map(async (ca) => [`ca:${ca.label}`, await monitor.ca(ca)] as const),
  ]);
  return clockSkew === undefined ? reports : [...reports, ['clock', monitor.clock(clockSkew())]];
}

/**
 * Logs why a part is not ok; the reason is not public, since it may name hosts and paths. Probes come every few
 * seconds, so it logs only changes.
 */
function changeLog(log: AdminDependencies['log']): (part: string, report: HealthReport) => void {
  const last = new Map<string, HealthReport>();
  return (part, report) => {
    const before = last.get(part) ?? { health: 'ok' };
    last.set(part, report);
    if (before.health === report.health && before.detail === report.detail) return;
    if (report.health === 'ok') log.info({ part }, 'a component is healthy again');
    else log.warn({ part, health: report.health, detail: report.detail }, 'a component is unhealthy');
  };
}
