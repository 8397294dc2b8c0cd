/** A CA that expires soon warns in the log, in its health and in the metrics. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { healthOf, watchExpiry } from '../../src/ca/expiry.ts';
import { Ca } from '../../src/ca/router.ts';
import { adminFixture, ailingCa, DAY, fileCa } from '../http/admin/support.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

let ca: Ca;
/** Expiry of the CA certificate, ms. Its certificates are valid for 30 days. */
let end: number;
beforeAll(async () => {
  ca = await fileCa(folder, 'devices', true);
  end = ca.certificate.notAfter.getTime();
});

describe('health', () => {
  test.each<[number, string, RegExp]>([
    [30, 'ok', /^$/],
    [29.9, 'degraded', /^the CA certificate expires in 29 days, on 20\d\d-/],
    [1.5, 'degraded', /expires in 1 day, on /],
    [0.1, 'degraded', /expires in 0 days, on /],
  ])('%f days before the end it is %s', async (days, expected, reason) => {
    const { health, detail = '' } = await healthOf(ca, end - days * DAY);
    expect(health).toBe(expected);
    expect(detail).toMatch(reason);
  });

  test('what is worse is not made better', async () => {
    const down = ailingCa('hsm', () => Promise.resolve({ health: 'down', detail: 'gone' }), ca.driver.chain());
    expect(await healthOf(down, end - DAY)).toEqual({ health: 'down', detail: 'gone' });
  });

  test('a CA whose certificate is not known yet has no end', async () => {
    const remote = ailingCa('remote', () => Promise.resolve({ health: 'ok' }));
    expect(await healthOf(remote, end)).toEqual({ health: 'ok' });
  });

  test('GET /admin/cas shows it with the days left; /readyz is 200 and says degraded, and why is in the log', async () => {
    const { call, raw, logged } = await adminFixture({ cas: [ca], start: end - 12.5 * DAY });
    expect((await call('GET', '/admin/cas/devices')).json()).toMatchObject({ health: 'degraded', days_left: 12 });
    const ready = await raw('GET', '/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([
      200,
      { status: 'degraded', parts: { store: 'ok', 'ca:devices': 'degraded' } },
    ]);
    expect(logged()).toContain('the CA certificate expires in 12 days');
    const metrics = (await call('GET', '/metrics')).body;
    expect(metrics).toMatch(
      new RegExp(`^estuary_ca_certificate_expiry_timestamp_seconds\\{ca="devices"\\} ${end / 1000}$`, 'm'),
    );
    expect(metrics).toMatch(/^estuary_ca_up\{ca="devices"\} 1$/m);
  });
});

describe('the log', () => {
  const warned: [object, string][] = [];
  const log = { warn: (fields: object, message: string) => void warned.push([fields, message]) };

  beforeEach(() => {
    warned.length = 0;
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Runs the check at a number of days before expiry. */
  const watch = (days: number): (() => void) => {
    vi.setSystemTime(end - days * DAY);
    return watchExpiry({ cas: () => [ca], log: log as never, now: Date.now });
  };

  test('at start and every day, with the days left', () => {
    const stop = watch(20);
    expect(warned).toEqual([
      [
        { ca: 'devices', days_left: 20, not_after: new Date(end).toISOString() },
        expect.stringContaining('the CA certificate expires in 20 days'),
      ],
    ]);
    vi.advanceTimersByTime(3 * DAY);
    expect(warned.map(([, message]) => /in (\d+) days/.exec(message)?.[1])).toEqual(['20', '19', '18', '17']);
    stop();
    vi.advanceTimersByTime(3 * DAY);
    expect(warned).toHaveLength(4);
  });

  test('nothing while there is time, and from then on also without a restart', () => {
    const stop = watch(31.5);
    vi.advanceTimersByTime(DAY);
    expect(warned).toEqual([]);
    vi.advanceTimersByTime(2 * DAY);
    expect(warned).toHaveLength(2);
    stop();
  });

  test('that certificates end with the CA before their time', () => {
    const long = new Ca({ ...ca.config, profile: { ...ca.profile, validity_days: 397 } }, ca.driver);
    vi.setSystemTime(end - 300 * DAY);
    watchExpiry({ cas: () => [long], log: log as never, now: Date.now })();
    expect(warned).toEqual([
      [expect.anything(), 'issued certificates expire with the CA certificate, before validity_days (397)'],
    ]);
  });

  test('that it has ended', () => {
    watch(-1)();
    expect(warned[0]?.[1]).toContain('the CA certificate expired on ');
  });

  test("that an OCSP responder's certificate ends, in its last week", () => {
    const certificate = { notAfter: new Date(end - 100 * DAY) };
    const statusSigner = { delegate: { certificate } };
    const { label, certificate: own, profile } = ca;
    const delegating = { label, certificate: own, profile, driver: { chain: () => [own.der], statusSigner } };
    const lookAt = (days: number): void => {
      vi.setSystemTime(end - (100 + days) * DAY);
      watchExpiry({ cas: () => [delegating as never], log: log as never, now: Date.now })();
    };
    lookAt(8);
    expect(warned).toEqual([]);
    lookAt(6);
    expect(warned).toEqual([[{ ca: 'devices', not_after: certificate.notAfter.toISOString() }, expect.any(String)]]);
    expect(warned[0]?.[1]).toContain('OCSP responder');
  });

  test('the timer does not keep the process alive', () => {
    vi.useRealTimers();
    const before = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const stop = watchExpiry({ cas: () => [ca], log: log as never, now: Date.now });
    expect(process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length).toBe(before);
    stop();
  });
});
