import { setTimeout as sleep } from 'node:timers/promises';
import { Type } from '@fastify/type-provider-typebox';
import type { CaDependency, HealthReport } from '../../ca/driver.ts';
import { describe, unavailable } from '../../errors.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { described, ErrorBody, oneOf, Text } from './schemas.ts';
import { healthOf } from '../../ca/expiry.ts';
import type { Ca } from '../../ca/router.ts';
import { logState } from '../../log.ts';
import { CLOCK_TOLERANCE } from '../../store/store.ts';

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
        response: { 200: described('Alive.', { status: oneOf(['ok']) }) },
      },
    },
    () => ({ status: 'ok' as const }),
  );

  const look = async (): Promise<readonly PartReport[]> => {
    const reports = await partReports(deps, monitor);
    for (const [part, report] of reports) logChange(part, report);
    return reports;
  };
  let timer: NodeJS.Timeout | undefined;
  app.addHook('onListen', () => {
    timer = setInterval(() => void look(), LOOK_MS).unref();
  });
  app.addHook('onClose', () => {
    clearInterval(timer);
  });

  app.get(
    '/readyz',
    {
      config: { access: 'public' },
      schema: {
        summary: 'Check whether this node should get requests',
        tags: ['health'],
        security: [],
        querystring: Type.Object(
          { ca: Type.Optional(Text('503 also while this label cannot issue; 404 for an unknown label.')) },
          { additionalProperties: false },
        ),
        response: {
          200: described(
            'The node should get requests. `parts` names `store`, `ca:` with each label that cannot issue or has its own CA, ' +
              'and with PostgreSQL `clock`; while they fail, also `files`, `client_crl`, and services as in `estuary_dependency_up`. A part that is `down` affects only what needs it. After a failed reload it also names ' +
              '`reload`, until a reload succeeds.',
            { status: oneOf(['ok', 'degraded']), parts: Type.Record(Type.String(), PartHealth) },
          ),
          404: described('The label is unknown.', ErrorBody.properties),
          503: described(
            'The store, the audit log or the clock is down, the node is stopping, or the label `ca` cannot issue. The message names every part that is down.',
            ErrorBody.properties,
          ),
        },
      },
    },
    async (request) => {
      const { ca: label } = request.query;
      const ca = label === undefined ? undefined : deps.cas.find(label);
      const reports = await look();
      const shown = reports.filter(([part, { health }]) => health !== 'ok' || !isOccasional(part));
      const parts = new Map(shown.map(([part, { health }]) => [part, health]));
      if (ca !== undefined) parts.set(`ca:${ca.label}`, (await monitor.ca(ca)).health);
      // The old configuration stays in force: a load balancer must not remove this server.
      if (deps.lastReload()?.ok === false) parts.set('reload', 'degraded');
      // Nobody loses a certificate without it.
      if (logState().problem !== undefined) parts.set('log', 'degraded');
      if (deps.isStopping?.() === true) parts.set('node', 'down');
      const down = [...parts].filter(([, health]) => health === 'down').map(([part]) => part);
      const decisive = ['store', 'clock', 'node', ...(ca === undefined ? [] : [`ca:${ca.label}`])];
      if (down.some((part) => decisive.includes(part))) throw unavailable('NOT_READY', `not ready: ${down.join(', ')}`);
      const status = [...parts.values()].every((health) => health === 'ok') ? ('ok' as const) : ('degraded' as const);
      return { status, parts: Object.fromEntries(parts) };
    },
  );
}

type PartReport = readonly [part: string, report: HealthReport];

/** Milliseconds between checks of which the log has the changes. */
const LOOK_MS = 10_000;
/** Milliseconds that a probe waits for a CA: a load balancer must not miss the answer of a node that works. */
const CA_WAIT_MS = 1000;
const SLOW: HealthReport = { health: 'degraded', detail: 'no response yet' };

/** Parts that are named only while they fail. */
const isOccasional = (part: string): boolean => !/^(?:store|clock|ca:.*)$/.test(part);

/** The state of each part by its public name. */
async function partReports(deps: AdminDependencies, monitor: HealthMonitor): Promise<readonly PartReport[]> {
  const { cas, clockSkew, missingCredentials } = deps;
  const labels = cas.all.filter((ca) => ca.issuer === ca || ca.fault !== undefined);
  const late = (report: Promise<HealthReport>): Promise<HealthReport> =>
    Promise.race([report, sleep(CA_WAIT_MS, SLOW, { ref: false })]);
  const reports = await Promise.all([
    monitor.store().then((report) => ['store', report] as const),
    ...labels.map(async (ca) => [`ca:${ca.label}`, await late(monitor.ca(ca))] as const),
    ...(missingCredentials === undefined
      ? []
      : [late(monitor.gssapi(missingCredentials)).then((report) => ['gssapi', report] as const)]),
  ]);
  return [
    ...reports,
    ...(clockSkew === undefined ? [] : [['clock', monitor.clock(clockSkew())] as const]),
    ...occasional(deps),
  ];
}

/** Services, CRLs and files, of which several can have one name. */
function occasional({ services, clientCrls, faults }: AdminDependencies): PartReport[] {
  const found: readonly (readonly [part: string, health: 'down' | 'degraded', problem: string | undefined])[] = [
    ...services().map(({ name, ca, problem }) => [ca === '' ? name : `${name}:${ca}`, 'down', problem] as const),
    ['client_crl', 'degraded', undefined],
    ...clientCrls().map(({ problem }) => ['client_crl', 'degraded', problem] as const),
    ['files', 'degraded', undefined],
    ...faults().map(({ key, message }) => ['files', 'degraded', `${key}: ${message}`] as const),
  ];
  return [...Map.groupBy(found, ([part]) => part)].map(([part, all]) => {
    const failing = all.filter(([, , problem]) => problem !== undefined);
    const [, health = 'ok'] = failing[0] ?? [];
    return [
      part,
      health === 'ok' ? { health } : { health, detail: failing.map(([, , problem]) => problem).join('; ') },
    ];
  });
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

/** A part that takes longer to report its health counts as down. */
const DEADLINE_MS = 5_000;
/** Lifetime of a report. The health calls are public and must not cause work for an HSM or the disk. */
const FRESH_MS = 1_000;

/** The health of the store and the CAs: checked at most once per second, with a deadline. */
export class HealthMonitor {
  readonly #reports = new Map<string, { readonly at: number; readonly report: Promise<HealthReport> }>();
  readonly #store: { checkWritable(): Promise<void> };
  readonly #now: () => number;
  readonly #deadline: number;

  /** @param deadline milliseconds per part */
  constructor(store: { checkWritable(): Promise<void> }, now: () => number, deadline = DEADLINE_MS) {
    this.#store = store;
    this.#now = now;
    this.#deadline = deadline;
  }

  /** Whether the database and the audit log are writable. Never rejects. */
  store(): Promise<HealthReport> {
    return this.#fresh('store', async () => {
      await this.#store.checkWritable();
      return { health: 'ok' };
    });
  }

  /** Whether this machine's clock agrees with the database's. @param skew milliseconds that it is ahead */
  clock(skew: number): HealthReport {
    const off = Math.abs(skew);
    if (off <= CLOCK_TOLERANCE.warning) return { health: 'ok' };
    const detail = `the clocks of this node and the database differ by ${Math.round(off / 1000)} s`;
    return { health: off > CLOCK_TOLERANCE.notReady ? 'down' : 'degraded', detail };
  }

  /** Whether a CA can sign, and until when. Never rejects. */
  ca(ca: Pick<Ca, 'label' | 'driver' | 'certificate' | 'fault'>): Promise<HealthReport> {
    return this.#fresh(`ca:${ca.label}`, () => healthOf(ca, this.#now()));
  }

  /** Whether a CA's external dependency responds. Never rejects. */
  dependency(label: string, dependency: CaDependency): Promise<HealthReport> {
    return this.#fresh(`${dependency.name}:${label}`, () => dependency.health());
  }

  /** Whether Kerberos tickets can be verified. Never rejects. @param missing why they cannot */
  gssapi(missing: () => Promise<string | undefined>): Promise<HealthReport> {
    return this.#fresh('gssapi', async () => {
      const detail = await missing();
      return detail === undefined ? { health: 'ok' } : { health: 'down', detail };
    });
  }

  #fresh(part: string, probe: () => Promise<HealthReport>): Promise<HealthReport> {
    const known = this.#reports.get(part);
    const at = this.#now();
    if (known !== undefined && at >= known.at && at - known.at < FRESH_MS) return known.report;
    const report = withDeadline(probe, this.#deadline);
    this.#reports.set(part, { at, report });
    return report;
  }
}

async function withDeadline(probe: () => Promise<HealthReport>, deadline: number): Promise<HealthReport> {
  const late = Promise.withResolvers<HealthReport>();
  const timer = setTimeout(() => late.resolve({ health: 'down', detail: 'no response in time' }), deadline);
  try {
    return await Promise.race([probe(), late.promise]);
  } catch (error) {
    return { health: 'down', detail: describe(error) };
  } finally {
    clearTimeout(timer);
  }
}
