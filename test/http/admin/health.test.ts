import { describe, expect, it } from 'vitest';
import { HealthMonitor } from '../../../src/http/admin/health.ts';
import type { HealthReport } from '../../../src/ca/driver.ts';
import { unavailable } from '../../../src/errors.ts';
import { adminFixture, ailingCa, failure } from './support.ts';
import { expectWholeBody } from './typed.ts';

const ok = () => Promise.resolve<HealthReport>({ health: 'ok' });
const down = () => Promise.resolve<HealthReport>({ health: 'down', detail: 'pkcs11 module /opt/secret.so crashed' });
const devices = ailingCa('devices', ok, [], true);

describe('GET /healthz and GET /readyz, without authentication', () => {
  it('/healthz tells that the process is alive, whatever else is down', async () => {
    const { raw } = await adminFixture({ cas: [devices, ailingCa('lab', down)] });
    const response = await raw('GET', '/healthz');
    expect(response.statusCode).toBe(200);
    expectWholeBody(response, { status: 'ok' });
  });

  it('/readyz names every part while all are usable', async () => {
    const { raw } = await adminFixture({ cas: [devices, ailingCa('lab', ok)] });
    const response = await raw('GET', '/readyz');
    expect(response.statusCode).toBe(200);
    expectWholeBody(response, { status: 'ok', parts: { store: 'ok', 'ca:devices': 'ok', 'ca:lab': 'ok' } });
  });

  it('/readyz stays 200 for a CA that is degraded: it is usable', async () => {
    const degraded = ailingCa('lab', () => Promise.resolve({ health: 'degraded' }));
    const { raw } = await adminFixture({ cas: [devices, degraded] });
    const response = await raw('GET', '/readyz');
    expect(response.statusCode).toBe(200);
    expectWholeBody(response, { status: 'degraded', parts: { store: 'ok', 'ca:devices': 'ok', 'ca:lab': 'degraded' } });
  });

  it('/readyz stays 200 and names a failed reload', async () => {
    const lastReload = { at: 0, ok: false };
    const { raw } = await adminFixture({ cas: [devices], lastReload });
    const response = await raw('GET', '/readyz');
    expect(response.statusCode).toBe(200);
    expectWholeBody(response, {
      status: 'degraded',
      parts: { store: 'ok', 'ca:devices': 'ok', reload: 'degraded' },
    });
  });

  it('/readyz stays 200 and names the CAs that fail; why goes to the log, not to the public', async () => {
    const { raw, logged } = await adminFixture({
      cas: [devices, ailingCa('lab', down), ailingCa('old', () => Promise.reject(new Error('gone')))],
    });
    const response = await raw('GET', '/readyz');
    expect(response.statusCode).toBe(200);
    expectWholeBody(response, {
      status: 'degraded',
      parts: { store: 'ok', 'ca:devices': 'ok', 'ca:lab': 'down', 'ca:old': 'down' },
    });
    expect(logged()).toContain('/opt/secret.so');
  });

  it('/readyz?ca=LABEL is 503 while that label cannot issue, and 404 for an unknown label', async () => {
    const { raw } = await adminFixture({ cas: [devices, ailingCa('lab', down)] });
    expect((await raw('GET', '/readyz?ca=devices')).statusCode).toBe(200);
    expect(failure(await raw('GET', '/readyz?ca=lab'))).toEqual({
      statusCode: 503,
      code: 'NOT_READY',
      message: 'not ready: ca:lab',
    });
    expect((await raw('GET', '/readyz?ca=none')).statusCode).toBe(404);
  });

  it('a CA that does not answer delays /readyz by a second at most', async () => {
    const { raw } = await adminFixture({ cas: [devices, ailingCa('lab', () => new Promise(() => undefined))] });
    const response = await raw('GET', '/readyz');
    expect(response.statusCode).toBe(200);
    expect(response.body).toContain('"ca:lab":"degraded"');
  });

  it('logs a part that is not ok once, however often it is asked for, and that it is ok again', async () => {
    let report: HealthReport = { health: 'down', detail: 'crashed' };
    const { raw, logged, advance } = await adminFixture({
      cas: [devices, ailingCa('lab', () => Promise.resolve(report))],
    });
    const lines = (): string[] =>
      logged()
        .split('\n')
        .filter((line) => line.includes('"part":"ca:lab"'));
    const probe = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        advance(1000);
        await raw('GET', '/readyz');
      }
    };
    await probe();
    expect(lines()).toEqual([expect.stringContaining('crashed')]);
    report = { health: 'ok' };
    await probe();
    expect(lines()[1]).toContain('healthy again');
    report = { health: 'degraded', detail: 'one of two' };
    await probe();
    expect(lines()).toHaveLength(3);
  });

  it('/readyz is 503 while the store cannot be written', async () => {
    const { raw } = await adminFixture({
      cas: [devices],
      wrapStore: (store) =>
        new Proxy(store, {
          get: (target, name) =>
            name === 'checkWritable'
              ? () => Promise.reject(unavailable('AUDIT_UNAVAILABLE', 'the audit log cannot be written'))
              : (Reflect.get(target, name) as unknown),
        }),
    });
    expect(failure(await raw('GET', '/readyz'))).toMatchObject({ statusCode: 503, message: 'not ready: store' });
  });

  it('asks a CA at most once a second however many ask, and one that hangs counts as down', async () => {
    let time = 0;
    let asked = 0;
    const monitor = new HealthMonitor({ checkWritable: () => Promise.resolve() }, () => time, 20);
    const hanging = ailingCa('hsm', () => {
      asked++;
      return new Promise<HealthReport>(() => undefined);
    });
    const reports = await Promise.all(Array.from({ length: 50 }, () => monitor.ca(hanging)));
    expect(new Set(reports.map(({ health }) => health))).toEqual(new Set(['down']));
    expect(asked).toBe(1);
    time += 1000;
    await monitor.ca(hanging);
    expect(asked).toBe(2);
  });
});
