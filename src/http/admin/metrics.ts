import { Type } from '@fastify/type-provider-typebox';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health-monitor.ts';
import { errorResponses, strictObject } from './schemas.ts';
import { serviceState } from './service-state.ts';

/** `GET /metrics` for Prometheus; public only where `admin.public_metrics` says so. */
export function registerMetrics(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  const isPublic = deps.settings.admin.public_metrics;
  app.get(
    '/metrics',
    {
      config: { access: isPublic ? 'public' : ['operator'] },
      schema: {
        summary: 'Counters and gauges for Prometheus',
        tags: ['health'],
        ...(isPublic ? { security: [] } : {}),
        querystring: strictObject({}),
        response: {
          200: {
            description: "Prometheus' text format 0.0.4.",
            content: { 'text/plain': { schema: Type.String() } },
          },
          ...errorResponses(400),
        },
      },
    },
    async (_request, reply) => {
      const text = await deps.metrics.render(await serviceState(deps, monitor));
      return reply.type('text/plain; version=0.0.4; charset=utf-8').send(text);
    },
  );
}
