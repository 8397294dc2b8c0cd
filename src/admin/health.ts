import { Type } from '@fastify/type-provider-typebox';
import type { Health } from '../ca/driver.ts';
import { unavailable } from '../errors.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health-monitor.ts';
import { ErrorBody, oneOf } from './schemas.ts';

const PartHealth = oneOf(['ok', 'degraded', 'down']);

/** `GET /healthz` and `GET /readyz`: for load balancers and orchestrators, without authentication. */
export function registerHealth(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  app.get(
    '/healthz',
    {
      config: { public: true },
      schema: {
        summary: 'Whether the process is alive',
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
      config: { public: true },
      schema: {
        summary: 'Whether the store and every CA are usable',
        tags: ['health'],
        security: [],
        response: {
          200: Type.Object(
            { status: oneOf(['ok', 'degraded']), parts: Type.Record(Type.String(), PartHealth) },
            { description: 'Every part is usable. `parts` names them: `store`, and `ca:` with the label of each CA.' },
          ),
          503: Type.Object(ErrorBody.properties, { description: 'The message names the parts that are down.' }),
        },
      },
    },
    async () => {
      const parts = await partsHealth(deps, monitor);
      const down = [...parts].filter(([, health]) => health === 'down').map(([part]) => part);
      if (down.length > 0) throw unavailable('NOT_READY', `not ready: ${down.join(', ')}`);
      const status: 'ok' | 'degraded' = [...parts.values()].includes('degraded') ? 'degraded' : 'ok';
      return { status, parts: Object.fromEntries(parts) };
    },
  );
}

/** The health of each part by its public name. Why one is not ok goes to the log: it may name hosts and paths. */
async function partsHealth(deps: AdminDependencies, monitor: HealthMonitor): Promise<Map<string, Health>> {
  const reports = await Promise.all([
    monitor.store().then((report) => ['store', report] as const),
    ...deps.cas.all.map(async (ca) => [`ca:${ca.label}`, await monitor.ca(ca)] as const),
  ]);
  for (const [part, { health, detail }] of reports)
    if (health !== 'ok') deps.log.warn({ part, health, detail }, 'a part of the service is not ok');
  return new Map(reports.map(([part, { health }]) => [part, health]));
}
