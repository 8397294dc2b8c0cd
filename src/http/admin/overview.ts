/** `GET /admin/overview`: the state of the service on one page, limited by the caller's roles. */
import { hostname } from 'node:os';
import type { FastifyRequest } from 'fastify';
import { Type, type Static } from '@fastify/type-provider-typebox';
import type { AuditType } from '../../audit/event.ts';
import { ERRORS } from '../../error-codes.ts';
import type { AdminRole } from '../../config/vocabulary.ts';
import { daysLeft } from '../../ca/expiry.ts';
import { callerOf, labelsOf, limited, pendingRejections, type LimitedStore } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health.ts';
import { CERTIFICATE_IN_USE, certificateInUse, reloadRecord } from './reload.ts';
import { route } from './route.ts';
import { Bool, described, Integer, nullable, oneOf, Text, Timestamp, titled } from './schemas.ts';
import { STATISTICS_HOUR } from '../../store/statistics-store.ts';
import { formatOptionalTimestamp, formatTimestamp } from '../../timestamp.ts';
import { serviceState } from './metrics.ts';

const DAY = 86_400_000;
/** Periods in days for counts of expiring certificates. */
const PERIODS = [1, 7, 14, 30, 60, 90, 180, 365] as const;
/** Milliseconds to cache the counts: a million certificates take a few hundredths of a second. */
const COUNTED_FOR = 10_000;

const health = {
  health: oneOf(['ok', 'degraded', 'down']),
  detail: Type.Optional(Text('The reason if it is not ok.')),
};
const daysUntil = Integer('Whole days until not_after; negative after expiry.');

const Overview = titled('Overview', 'The state of the service.', {
  time: Timestamp('The time of this report.'),
  version: Type.String(),
  certificates: Type.Optional(
    described('At most ten seconds old. For `ra` and `auditor`.', {
      valid: Integer('Neither expired nor revoked.'),
      ending: Type.Array(
        Type.Object({
          days: Type.Integer(),
          count: Integer('Valid certificates that expire within this number of days; shorter periods are included.'),
        }),
      ),
    }),
  ),
  requests: Type.Optional(
    described('The number of pending requests, by CA. For `ra` and `auditor`.', {
      pending: Type.Array(Type.Object({ ca: Type.String(), count: Type.Integer() })),
    }),
  ),
  rejections: described(
    'Error responses to devices, and rejected credentials of administrators, of the last 24 hours; by code.',
    {
      since: Timestamp('A whole hour.'),
      total: Type.Integer(),
      codes: Type.Array(
        Type.Object({
          code: Text('docs/reference/errors.md.'),
          count: Type.Integer(),
          audit_type: Text('The type of most of its audit records.'),
        }),
        {
          description: 'The most frequent first.',
        },
      ),
    },
  ),
  lockouts: Type.Optional(Integer('The number of lockouts in force. For `operator`.')),
  health: Type.Optional(
    described('The health of the service and its dependencies. For `operator`.', {
      store: Type.Object(health),
      cas: Type.Array(
        Type.Object({
          label: Type.String(),
          ...health,
          not_after: nullable(Timestamp('The expiry date of the CA certificate; null while it is unknown.')),
          days_left: nullable(daysUntil),
        }),
      ),
      dependencies: Type.Array(
        Type.Object({
          name: Text('As in `estuary_dependency_up`.'),
          ca: nullable(Text('The label of the CA that uses it.')),
          up: Type.Boolean(),
        }),
      ),
      faults: Type.Array(Type.Object({ key: Type.String(), message: Type.String() }), {
        description: 'Files that cannot be used, and CRLs that are missing or have expired.',
      }),
      nodes: Type.Array(
        Type.Object({
          name: Text('`store.node_name`, as in audit records.'),
          host: Text('The host name of the machine.'),
          alive: Bool(
            'false: it has not renewed its lease for 20 seconds, so the other nodes close what it left open.',
          ),
          lease_age: nullable(
            Type.Number({
              description: 'Seconds since it renewed its lease; null for a SQLite store, which has no other nodes.',
            }),
          ),
          on_duty: Bool('true: this node does the work that one node does for all, such as signing CRLs.'),
        }),
        {
          description: 'The nodes that share the store, by name. A dead node disappears when another node notices it.',
        },
      ),
      reload: nullable(
        described('The last reload; null: none since the start.', { at: Timestamp(), ok: Type.Boolean() }),
      ),
      certificates: Type.Array(
        Type.Object({
          ...CERTIFICATE_IN_USE,
          days_left: daysUntil,
        }),
        { description: 'The certificates that the service needs, the earliest expiry first.' },
      ),
    }),
  ),
});

type Overview = Static<typeof Overview>;
type Endings = NonNullable<Overview['certificates']>;

export function registerOverview(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  const endings = cachedExpiryCounts(deps);
  route(app, {
    call: 'GET /admin/overview',
    access: ['ra', 'auditor', 'operator'],
    labels: 'records',
    summary: 'Get the state of the service',
    description: 'Parts that the roles of the caller do not include are absent.',
    tag: 'statistics',
    response: { 200: Overview },
    handler: async (request) => {
      const { roles } = callerOf(request);
      const { store } = limited(deps, request);
      const may = (...needed: AdminRole[]): boolean =>
        ['admin' as const, ...needed].some((role) => roles.includes(role));
      const now = deps.now();
      const [certificates, waiting, rejections, ownHealth] = await Promise.all([
        may('ra', 'auditor') ? endings(request, store) : undefined,
        store.countWaiting(now),
        countRejections(deps, request, store),
        may('operator') ? healthOf(deps, monitor) : undefined,
      ]);
      return {
        time: formatTimestamp(now),
        version: deps.version,
        ...(certificates === undefined ? {} : { certificates }),
        ...(may('ra', 'auditor') ? { requests: { pending: waiting.pending } } : {}),
        rejections,
        ...(may('operator') ? { lockouts: waiting.lockouts } : {}),
        ...(ownHealth === undefined ? {} : { health: ownHealth }),
      };
    },
  });
}

/** Counts them, or returns the counts of a moment ago, so that an open page does not keep the store busy. */
function cachedExpiryCounts({
  now,
}: AdminDependencies): (request: FastifyRequest, store: LimitedStore) => Promise<Endings> {
  // By the labels that a caller may see: as many as the configuration has sets of them.
  const known = new Map<string, { readonly at: number; readonly counts: Promise<Endings> }>();
  return (request, store) => {
    const key = JSON.stringify(labelsOf(request) ?? null);
    const at = now();
    const before = known.get(key);
    if (before !== undefined && at >= before.at && at - before.at < COUNTED_FOR) return before.counts;
    const counts = countEndings(store, at);
    counts.catch(() => known.delete(key));
    known.set(key, { at, counts });
    return counts;
  };
}

async function countEndings(store: LimitedStore, at: number): Promise<Endings> {
  const ends = PERIODS.map((days) => at + days * DAY);
  const counts = await store.countCertificatesByEnd(at, ends);
  const sum = (some: readonly number[]): number => some.reduce((total, n) => total + n, 0);
  return {
    valid: sum(counts),
    ending: PERIODS.map((days, index) => ({ days, count: sum(counts.slice(0, index + 1)) })),
  };
}

async function countRejections(deps: AdminDependencies, request: FastifyRequest, store: LimitedStore) {
  const since = Math.floor((deps.now() - DAY) / STATISTICS_HOUR + 1) * STATISTICS_HOUR;
  const counts = new Map<string, number>();
  for (const { code, count } of [...(await store.countRejections(since)), ...pendingRejections(deps, request)])
    counts.set(code, count + (counts.get(code) ?? 0));
  return {
    since: formatTimestamp(since),
    total: [...counts.values()].reduce((sum, count) => sum + count, 0),
    codes: [...counts]
      .map(([code, count]) => ({ code, count, audit_type: auditTypeOf(code) }))
      .sort((a, b) => b.count - a.count),
  };
}

/** By the beginning of the code. */
const AUTHENTICATION: Readonly<Record<string, AuditType>> = {
  ADMIN_AUTHENTICATION_REQUIRED: 'auth.admin',
  CLIENT_CERTIFICATE_: 'auth.mtls',
  CMC_: 'auth.cmc',
  GSSAPI_: 'auth.gssapi',
  JWT_: 'auth.jwt',
  LDAP_: 'auth.ldap',
  LOCKED_OUT: 'lockout.started',
  OIDC_: 'auth.admin',
  OTP_: 'auth.otp',
};

function auditTypeOf(code: string): AuditType {
  const [, type] = Object.entries(AUTHENTICATION).find(([start]) => code.startsWith(start)) ?? [];
  const status: unknown = Reflect.get(ERRORS, code);
  return type ?? ([status].flat().some((each) => Number(each) >= 500) ? 'certificate.failed' : 'certificate.denied');
}

async function healthOf(deps: AdminDependencies, monitor: HealthMonitor): Promise<NonNullable<Overview['health']>> {
  const now = deps.now();
  const [store, nodes, cas, { dependencies, certificates }] = await Promise.all([
    monitor.store(),
    nodesOf(deps),
    Promise.all(
      deps.cas.issuers.map(async (ca) => ({
        label: ca.label,
        ...(await monitor.ca(ca)),
        not_after: formatOptionalTimestamp(ca.driver.chain().length === 0 ? null : ca.certificate.notAfter.getTime()),
        days_left: daysLeft(ca, now) ?? null,
      })),
    ),
    serviceState(deps, monitor),
  ]);
  return {
    store,
    cas,
    faults: [
      ...deps.faults(),
      ...deps.clientCrls().flatMap(({ problem: message }) => (message === undefined ? [] : { key: 'crl', message })),
    ],
    dependencies: dependencies.map(({ ca, ...dependency }) => ({ ...dependency, ca: ca === '' ? null : ca })),
    nodes,
    reload: reloadRecord(deps.lastReload()),
    certificates: certificates
      .toSorted((a, b) => a.notAfter - b.notAfter)
      .map((certificate) => ({
        ...certificateInUse(certificate),
        days_left: Math.floor((certificate.notAfter - now) / DAY),
      })),
  };
}

/** Never rejects: the store's own health reports a failure. */
async function nodesOf({ store, node }: AdminDependencies): Promise<NonNullable<Overview['health']>['nodes']> {
  const known = await store.listNodes().catch(() => undefined);
  if (known?.length === 0) return [{ name: node, host: hostname(), alive: true, lease_age: null, on_duty: true }];
  return (known ?? []).map(({ age, ...shown }) => ({ ...shown, lease_age: Math.round(age / 100) / 10 }));
}
