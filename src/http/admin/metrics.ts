import { Type } from '@fastify/type-provider-typebox';
import { endOf } from '../../config/material/material.ts';
import { parseCertificate } from '../../pki/x509/certificate.ts';
import type { ServiceState } from '../../service-state-metrics.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health.ts';
import { route } from './route.ts';

/** Never rejects: a part that does not respond is reported as such. */
export async function serviceState(deps: AdminDependencies, monitor: HealthMonitor): Promise<ServiceState> {
  const cas = deps.cas.all.filter((ca) => ca.issuer === ca || ca.fault !== undefined);
  const [store, dependencies, waiting, ...reports] = await Promise.all([
    monitor.store(),
    dependenciesOf(deps, monitor),
    // `estuary_store_up` reports a store that does not respond.
    deps.store.countWaiting(deps.now()).catch(() => undefined),
    ...cas.map((ca) => monitor.ca(ca)),
  ]);
  return {
    cas: cas.map((ca, index) => ({
      label: ca.label,
      up: reports[index]?.health !== 'down',
      // Unknown until a remote CA reports its certificate.
      not_after: ca.driver.chain().length === 0 ? undefined : ca.certificate.notAfter.getTime(),
    })),
    certificates: [
      ...deps.certificateExpiries(),
      ...cas.flatMap(({ label, driver }) =>
        driver.chain().map((der) => endOf({ use: 'ca', ca: label }, parseCertificate(der))),
      ),
    ],
    dependencies,
    clientCrls: deps.clientCrls(),
    waiting,
    holders: await deps.fleet.summary().then(
      ({ labels }) => labels,
      () => undefined,
    ),
    storeUp: store.health !== 'down',
    lastReload: deps.lastReload(),
    clockSkew: deps.clockSkew?.() ?? 0,
  };
}

/** The dependencies of the CAs, of Negotiate, and the services of the configuration. */
async function dependenciesOf(deps: AdminDependencies, monitor: HealthMonitor): Promise<ServiceState['dependencies']> {
  const behindCas = deps.cas.issuers.flatMap(({ label, driver: { dependency } }) =>
    dependency === undefined
      ? []
      : [{ name: dependency.name, ca: label, report: monitor.dependency(label, dependency) }],
  );
  const { missingCredentials } = deps;
  const gssapi =
    missingCredentials === undefined
      ? []
      : [{ name: 'gssapi', ca: '', report: monitor.gssapi(missingCredentials) } as const];
  const asked = await Promise.all(
    [...behindCas, ...gssapi].map(async ({ name, ca, report }) => ({ name, ca, up: (await report).health !== 'down' })),
  );
  const tried = Map.groupBy(deps.services(), ({ name, ca }) => `${name} ${ca}`).values();
  const services = [...tried].flatMap(([service, ...more]) =>
    service === undefined
      ? []
      : [{ name: service.name, ca: service.ca, up: [service, ...more].every(({ problem }) => problem === undefined) }],
  );
  return [...asked, ...services];
}

/** `GET /metrics` for Prometheus; public only with `admin.public_metrics`. */
export function registerMetrics(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  const isPublic = deps.settings.admin.public_metrics;
  route(app, {
    call: 'GET /metrics',
    access: isPublic ? 'public' : ['operator'],
    summary: 'Get the metrics for Prometheus',
    tag: 'health',
    response: {
      200: {
        description: "Prometheus' text format 0.0.4.",
        content: { 'text/plain': { schema: Type.String() } },
      },
    },
    handler: async (_request, reply) => {
      const text = await deps.metrics.render(await serviceState(deps, monitor));
      return reply.type('text/plain; version=0.0.4; charset=utf-8').send(text);
    },
  });
}
