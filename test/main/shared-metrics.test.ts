/** Contract §11: `/metrics` sums all workers. */
import { afterEach, expect, test, vi } from 'vitest';
import type { ServiceState } from '../../src/service-state-metrics.ts';
import { Metrics } from '../../src/metrics.ts';
import {
  MetricsKeeper,
  WorkerMetrics,
  type MetricsMessage,
  type MetricsWorker,
} from '../../src/main/shared-metrics.ts';

afterEach(() => vi.useRealTimers());

interface Member {
  readonly worker: MetricsWorker;
  readonly metrics: Metrics;
}

/** A worker whose messages arrive later, as between processes; `mute`: it hears nothing. */
function join(keeper: MetricsKeeper, { mute = false } = {}): Member {
  let listener: (message: unknown) => void = () => undefined;
  const worker: MetricsWorker = {
    send: (message: MetricsMessage) => setImmediate(() => (mute ? undefined : listener(structuredClone(message)))),
  };
  const channel = {
    send: (message: unknown) => setImmediate(() => keeper.take(worker, structuredClone(message))),
    onMessage: (heard: (message: unknown) => void) => {
      listener = heard;
    },
  };
  const metrics = new Metrics((own) => {
    const shared = new WorkerMetrics(channel, own);
    return () => shared.collect();
  });
  keeper.add(worker);
  return { worker, metrics };
}

const count = ({ metrics }: Member, times: number): void => {
  for (let i = 0; i < times; i++) metrics.countRequest('est', { operation: 'cacerts', ms: 1 }, 200);
};

const STATE: ServiceState = {
  cas: [],
  dependencies: [],
  certificates: [],
  waiting: undefined,
  storeUp: true,
  workers: { alive: 2, configured: 2 },
  lastReload: undefined,
};

const sample = (text: string, name: string): number =>
  Number(new RegExp(`^${name}(?:\\{.*\\})? (.*)$`, 'm').exec(text)?.[1]);

test('counts and memory are summed whichever worker is asked; the start is that of the youngest, the CAs of the one asked', async () => {
  const keeper = new MetricsKeeper();
  const members = [join(keeper), join(keeper)] as const;
  count(members[0], 2);
  count(members[1], 3);
  for (const { metrics } of members) {
    const text = await metrics.render({ ...STATE, cas: [{ label: 'devices', up: true, not_after: undefined }] });
    expect(sample(text, 'estuary_requests_total')).toBe(5);
    expect(sample(text, 'process_resident_memory_bytes')).toBeGreaterThan(1.2 * process.memoryUsage.rss());
    expect(Math.abs(sample(text, 'process_start_time_seconds') * 1000 - performance.timeOrigin)).toBeLessThan(60_000);
    expect(text.match(/^estuary_ca_up.*$/gm)).toEqual(['estuary_ca_up{ca="devices"} 1']);
  }
});

test('what a dead worker has counted is kept, what it was is not', async () => {
  const keeper = new MetricsKeeper();
  const [alive, dead, dead2] = [join(keeper), join(keeper), join(keeper)];
  for (const member of [alive, dead, dead2]) count(member, 2);
  const all = await alive.metrics.render(STATE);
  keeper.gone(dead.worker);
  keeper.gone(dead2.worker);
  count(alive, 1);
  const text = await alive.metrics.render(STATE);
  expect(sample(text, 'estuary_requests_total')).toBe(7);
  expect(sample(text, 'process_resident_memory_bytes')).toBeLessThan(sample(all, 'process_resident_memory_bytes'));
});

test('a worker that dies while it is asked holds nobody up', async () => {
  const keeper = new MetricsKeeper();
  const [alive, dying] = [join(keeper), join(keeper, { mute: true })];
  count(alive, 1);
  const rendered = alive.metrics.render(STATE);
  setTimeout(() => keeper.gone(dying.worker), 20);
  expect(sample(await rendered, 'estuary_requests_total')).toBe(1);
});

test('a worker that does not tell makes the scrape 503, not a smaller sum', async () => {
  const keeper = new MetricsKeeper();
  const [alive] = [join(keeper), join(keeper, { mute: true })];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const refused = expect(alive.metrics.render(STATE)).rejects.toMatchObject({
    status: 503,
    code: 'METRICS_INCOMPLETE',
  });
  await vi.advanceTimersByTimeAsync(3000);
  await refused;
});

test('what is not about metrics is left to others', () => {
  const { worker } = join(new MetricsKeeper());
  for (const message of ['asking', null, {}, { metrics: 'ask' }, { metrics: 'told', id: 1, families: [1] }, { id: 1 }])
    expect(new MetricsKeeper().take(worker, message), JSON.stringify(message)).toBe(false);
});
