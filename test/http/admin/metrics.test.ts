import { describe, expect, it } from 'vitest';
import type { CaDependency } from '../../../src/ca/driver.ts';
import { Ca } from '../../../src/ca/router.ts';
import { Metrics } from '../../../src/metrics.ts';
import type { ServiceState } from '../../../src/service-state-metrics.ts';
import { adminFixture, ailingCa, bearer, failure } from './support.ts';

const STATE: ServiceState = {
  cas: [],
  dependencies: [],
  certificates: [],
  clientCrls: [],
  waiting: undefined,
  storeUp: true,
  lastReload: undefined,
  clockSkew: 0,
};

const ok = () => Promise.resolve({ health: 'ok' as const });
const down = () => Promise.resolve({ health: 'down' as const });

/** The samples by name and labels; throws on a line that Prometheus would not read. */
function parse(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  const typed = new Set<string>();
  for (const line of text.split('\n').slice(0, -1)) {
    const type = /^# TYPE ([a-z_]+) (?:counter|gauge|histogram)$/.exec(line)?.[1];
    if (type !== undefined) typed.add(type);
    if (line === '' || line.startsWith('# ')) continue;
    const [, name = '', labels = '', value = ''] =
      /^([a-z_]+)((?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\})?) (\S+)$/.exec(line) ?? [];
    if (!typed.has(name.replace(/_(?:bucket|sum|count)$/, '')) || !Number.isFinite(Number(value)))
      throw new Error(`not a sample: ${line}`);
    samples.set(`${name}${labels}`, Number(value));
  }
  return samples;
}

describe('GET /metrics', () => {
  it('needs admin authentication unless public_metrics is on', async () => {
    const closed = await adminFixture();
    expect(failure(await closed.raw('GET', '/metrics')).statusCode).toBe(401);
    expect((await closed.raw('GET', '/metrics', bearer)).statusCode).toBe(200);
    const open = await adminFixture({ settings: { admin: { public_metrics: true } } });
    expect((await open.raw('GET', '/metrics')).statusCode).toBe(200);
    expect(failure(await open.raw('GET', '/admin/otp')).statusCode).toBe(401);
  });

  it('is Prometheus text with requests, CAs, event loop, CPU and memory', async () => {
    const { call, raw } = await adminFixture({ cas: [ailingCa('devices', ok, [], true), ailingCa('lab', down)] });
    await call('POST', '/admin/otp', { client_id: 'd' });
    await call('POST', '/admin/otp', { client_id: '' });
    await call('GET', '/admin/otp/one');
    await call('GET', '/admin/otp/two');
    await call('GET', '/admin/a-path-of-the-clients-own');
    const response = await raw('GET', '/metrics', bearer);
    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(response.body).not.toContain('clients-own');
    const samples = parse(response.body);
    const requests = (operation: string, status: number): unknown =>
      samples.get(`estuary_requests_total{listener="admin",operation="${operation}",ca="",status="${status}"}`);
    expect(requests('POST /admin/otp', 201)).toBe(1);
    expect(requests('POST /admin/otp', 400)).toBe(1);
    expect(requests('GET /admin/otp/:id', 404)).toBe(2);
    expect(requests('unknown', 404)).toBe(1);
    expect(samples.get('estuary_ca_up{ca="devices"}')).toBe(1);
    expect(samples.get('estuary_ca_up{ca="lab"}')).toBe(0);
    expect(samples.get('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(samples.get('estuary_event_loop_delay_seconds{percentile="99"}')).toBeGreaterThanOrEqual(0);
  });

  it('tells the health of what stands behind the CAs and Negotiate', async () => {
    const behind = (label: string, dependency: CaDependency): Ca => {
      const { config, driver } = ailingCa(label, ok, [], label === 'devices');
      return new Ca(config, { ...driver, dependency });
    };
    const missing: string[] = [];
    const { raw, advance } = await adminFixture({
      cas: [
        behind('devices', { name: 'hsm', health: ok }),
        behind('lab', { name: 'hsm', health: () => Promise.resolve({ health: 'degraded' }) }),
        behind('plant', { name: 'dogtag', health: down }),
        ailingCa('own', ok),
      ],
      missingCredentials: () => Promise.resolve(missing[0]),
    });
    const scrape = async (): Promise<unknown> => {
      const samples = [...parse((await raw('GET', '/metrics', bearer)).body)];
      return samples.filter(([name]) => name.startsWith('estuary_dependency_up'));
    };
    const up = (dependency: string, ca: string, value: number): [string, number] => [
      `estuary_dependency_up{dependency="${dependency}",ca="${ca}"}`,
      value,
    ];
    const behindCas = [up('hsm', 'devices', 1), up('hsm', 'lab', 1), up('dogtag', 'plant', 0)];
    expect(await scrape()).toEqual([...behindCas, up('gssapi', '', 1)]);
    missing.push('no key table');
    advance(1001);
    expect(await scrape()).toEqual([...behindCas, up('gssapi', '', 0)]);
  });

  it('counts certificates by CA and refused credentials by method from the events that were committed', async () => {
    const metrics = new Metrics();
    const { store } = await adminFixture({ onCommit: (events) => metrics.observe(events) });
    await store.audit([{ type: 'certificate.issued', outcome: 'success', ca: 'a "quoted" \\ label' }]);
    await store.audit([
      { type: 'auth.mtls', outcome: 'failure' },
      { type: 'auth.otp', outcome: 'success' },
    ]);
    const policy = { max_failures: 5, failure_window: 300, lockout_duration: 900 };
    await store.recordFailure(['address:192.0.2.1'], policy, 0, [{ type: 'auth.otp', outcome: 'failure' }]);
    const samples = parse(await metrics.render(STATE));
    expect(samples.get('estuary_certificates_issued_total{ca="a \\"quoted\\" \\\\ label"}')).toBe(1);
    expect(samples.get('estuary_authentication_failures_total{method="mtls"}')).toBe(1);
    expect(samples.get('estuary_authentication_failures_total{method="otp"}')).toBe(1);
    metrics.close();
  });
});
