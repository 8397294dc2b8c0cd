/**
 * After the same requests at a local and at each remote CA, on both stores: the metrics, the event stream and the audit
 * log say the same.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIT_TYPES, type AuditEvent, type AuditRecord } from '../../../../src/audit/event.ts';
import { Ca } from '../../../../src/ca/router.ts';
import type { CaConfig } from '../../../../src/config/schema.ts';
import { eventStream } from '../../../../src/http/admin/events.ts';
import { Metrics } from '../../../../src/metrics.ts';
import { parseCertificate } from '../../../../src/pki/x509/certificate.ts';
import { openPostgresStore } from '../../../../src/store/postgres/open.ts';
import type { ServiceState } from '../../../../src/service-state-metrics.ts';
import { openStore } from '../../../../src/store/sqlite/open.ts';
import type { Store } from '../../../../src/store/store.ts';
import { deviceRow, event } from '../../../store/rows.ts';
import { type PostgresCluster, sharedPostgres } from '../../../support/postgres.ts';
import { requires } from '../../../support/requires.ts';
import { type Device, Node, type OpenStore, type RemoteLabel, World } from './world.ts';

const LABELS: readonly (RemoteLabel | 'devices')[] = ['devices', 'est', 'acme', 'command', 'dogtag'];
const ONE_FAILURE = { max_failures: 0, failure_window: 300, lockout_duration: 900 };
/** What requests of devices and decisions of administrators leave in the audit log. */
const KINDS = [
  ...['auth.otp', 'certificate.issued', 'certificate.revoked', 'certificate.failed', 'certificate.denied'],
  ...['request.received', 'request.queued', 'request.approved', 'request.rejected', 'otp.used', 'otp.returned'],
  ...['lockout.started', 'device.created'],
];

const STATE: ServiceState = {
  ...{ cas: [], dependencies: [], certificates: [], clientCrls: [], waiting: undefined },
  ...{ storeUp: true, lastReload: undefined, clockSkew: 0 },
};

/** Requests of every result, as far as the CA has it. */
async function requests(world: World, label: RemoteLabel | 'devices'): Promise<void> {
  world.clock = Date.now();
  const node = await Node.start(world, label);
  const upstream = label === 'devices' ? undefined : world.upstreams[label];
  const { store } = world;
  const ca = (more: Partial<CaConfig>) => new Ca({ ...node.ca.config, ...more }, node.ca.driver);
  const certified = async (device: Device, at = node.ca): Promise<Buffer> => {
    for (let attempt = 0; attempt < 10; attempt++) {
      const answer = await node.send(device, { ca: at });
      if (answer !== 'killed' && answer.certificate !== undefined) return answer.certificate;
      world.clock += 1500;
    }
    throw new Error(`no certificate at ${label}`);
  };
  const of = { ca: label, outcome: 'success' } as const;

  const { serialNumber: serial } = parseCertificate(await certified(await world.device()));
  const revocation = { ca: label, serial, revoked_at: world.clock, reason: 'superseded', invalidity_date: null };
  await store.revokeCertificate(revocation, [{ ...of, type: 'certificate.revoked', serial }]);
  await store.revokeCertificate(revocation, [{ ...of, type: 'certificate.revoked', serial }]);

  const manual = ca({ approval: 'manual' });
  for (const status of ['approved', 'rejected'] as const) {
    const device = await world.device();
    await node.send(device, { ca: manual });
    const [request_id = ''] = device.requestIds;
    const decision = { id: request_id, status, reason: null, decided_at: world.clock } as const;
    await store.decideRequest(decision, [{ ...of, type: `request.${status}`, request_id }]);
    if (status === 'approved') await certified(device, manual);
  }
  await node.send(await world.device(), { ca: ca({ devices: 'required' }) });

  if (upstream !== undefined) {
    upstream.mode = 'queue';
    const [approved, rejected] = [await world.device(), await world.device()];
    for (const device of [approved, rejected]) await node.send(device);
    upstream.mode = 'issue';
    await upstream.decide('approve', approved.name);
    await upstream.decide('reject', rejected.name);
    world.clock += 1500;
    await certified(approved);
    await node.send(rejected);
    upstream.mode = 'refuse';
    await node.send(await world.device());
    upstream.mode = 'issue';
    upstream.steps.at = () => 'cut';
    await node.send(await world.device());
    upstream.steps.at = () => undefined;
  }
  await store.putDevices(
    [{ row: deviceRow({ id: label, ca: label }), events: [{ ...of, type: 'device.created' }] }],
    'create',
  );
  const failure = event('auth.otp', { ca: label, outcome: 'failure' });
  await store.recordFailure([`address:192.0.2.${LABELS.indexOf(label)}`], ONE_FAILURE, world.clock, [failure]);
  await node.close();
}

/** The samples of the counters that come from events. */
async function counted(metrics: Metrics): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.render(STATE)).split('\n');
  const names = 'certificates_issued|certificates_revoked|requests_queued|authentications|authentication_failures';
  const sample = new RegExp(`^(estuary_(?:${names})_total\\{.*\\}) (\\d+)$`);
  return new Map(
    lines.flatMap((line) => {
      const [, name, count] = sample.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(count)] as const];
    }),
  );
}

/** What docs/reference/metrics.md says that they count, from the audit log. */
function expected(records: readonly AuditRecord[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const add = (sample: string): void => void counts.set(sample, (counts.get(sample) ?? 0) + 1);
  for (const { type, outcome, ca = '', label = ca } of records) {
    if (type === 'certificate.issued') add(`estuary_certificates_issued_total{ca="${label}"}`);
    if (type === 'certificate.revoked') add(`estuary_certificates_revoked_total{ca="${label}"}`);
    if (type === 'request.queued') add(`estuary_requests_queued_total{ca="${ca}"}`);
    // An administrator's valid credential is counted at the call, whether or not it leaves a record.
    if (!type.startsWith('auth.') || (type === 'auth.admin' && outcome === 'success')) continue;
    const method = type.slice('auth.'.length);
    add(`estuary_authentications_total{method="${method}",outcome="${outcome}"}`);
    if (outcome === 'failure') add(`estuary_authentication_failures_total{method="${method}"}`);
  }
  return counts;
}

async function streamed(store: Store, count: number): Promise<readonly unknown[]> {
  const stream = eventStream({
    read: (after, limit) => store.auditLines(after, limit),
    after: 0,
    show: (record) => record,
    mayGoOn: () => Promise.resolve(true),
    mayEnd: () => false,
  });
  let text = '';
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.split('event: audit').length > count) break;
  }
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']): unknown => JSON.parse(data));
}

const shown = ({ type, outcome, ca, request_id, serial }: AuditEvent) => ({ type, outcome, ca, request_id, serial });

describe.each(['sqlite', 'postgres'] as const)('%s', (driver) => {
  const isHere = driver === 'sqlite' || requires('postgres');
  const [reported, metrics]: [AuditEvent[], Metrics] = [[], new Metrics()];
  const onCommit = (events: readonly AuditEvent[]): void => {
    reported.push(...events);
    metrics.observe(events);
  };
  let cluster: PostgresCluster | undefined;
  let url = '';
  let world: World;
  beforeAll(async () => {
    if (!isHere) return;
    const inFile: OpenStore = (options) => openStore({ ...options, onCommit });
    const onServer: OpenStore = (options) =>
      openPostgresStore({
        ...options,
        server: { url },
        lookupKey: { configured: undefined, required: false },
        poolSize: 3,
        onCommit,
      });
    if (driver === 'postgres') {
      cluster = await sharedPostgres();
      url = await cluster.createDatabase();
    }
    world = await World.start(driver === 'sqlite' ? inFile : onServer);
  });
  afterAll(async () => {
    metrics.close();
    if (!isHere) return;
    await world.stop();
    await cluster?.dropDatabase(url);
  });

  test.skipIf(!isHere)('the metrics, the event stream and the audit log agree at every kind of CA', async () => {
    for (const label of LABELS) await requests(world, label);
    const { items } = await world.store.listAudit({ limit: 1000 });
    expect(reported.map(shown)).toEqual(items.map(shown));
    expect(new Set(items.map(({ type }) => type))).toEqual(new Set([...KINDS, ...items.map(({ type }) => type)]));
    for (const label of LABELS)
      expect(items.filter(({ type, ca }) => type === 'request.queued' && ca === label).length).toBeGreaterThan(1);
    expect(await counted(metrics)).toEqual(expected(items));
    expect(await streamed(world.store, items.length)).toEqual(items);
  });

  test.skipIf(!isHere)('they agree about every type of event', async () => {
    for (const type of AUDIT_TYPES)
      for (const outcome of ['success', 'failure'] as const)
        await world.store.audit([{ type, outcome, ca: 'devices' }]);
    const { items } = await world.store.listAudit({ limit: 1000 });
    expect(new Set(items.map(({ type }) => type))).toEqual(new Set(AUDIT_TYPES));
    expect(reported.map(shown)).toEqual(items.map(shown));
    expect(await counted(metrics)).toEqual(expected(items));
    expect(await streamed(world.store, items.length)).toEqual(items);
  });
});
