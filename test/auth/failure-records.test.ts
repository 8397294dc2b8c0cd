import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import type { AuditEvent } from '../../src/audit/event.ts';
import { FailureRecords } from '../../src/auth/failure-records.ts';
import { KeptLog } from '../support/kept-log.ts';

const MINUTE = 60_000;

beforeEach(() => vi.useFakeTimers({ now: Date.UTC(2026, 10, 22) }));
afterEach(() => vi.useRealTimers());

interface Kept {
  readonly failures: FailureRecords;
  readonly records: AuditEvent[];
  readonly observed: AuditEvent[];
  readonly log: KeptLog;
}

function kept(fail: () => boolean = () => false): Kept {
  const [records, observed]: [AuditEvent[], AuditEvent[]] = [[], []];
  const log = new KeptLog();
  const audit = (events: readonly AuditEvent[]): Promise<void> => {
    if (fail()) return Promise.reject(new Error('full'));
    records.push(...events);
    return Promise.resolve();
  };
  const observe = (events: readonly AuditEvent[]): number => observed.push(...events);
  const failures = new FailureRecords({ store: { audit }, log, now: Date.now, observe });
  return { failures, records, observed, log };
}

const refusal = (changes: Partial<AuditEvent> = {}): AuditEvent => ({
  type: 'auth.mtls',
  outcome: 'failure',
  address: '192.0.2.1',
  detail: 'simpleenroll; certificate signed by unknown authority',
  ...changes,
});

describe('refusals of one address share a record that counts them', () => {
  test('of 300 alike five have a record of their own; the sixth record counts 295', async () => {
    const { failures, records, observed } = kept();
    for (let n = 0; n < 300; n++) await failures.record(refusal());
    expect(records).toHaveLength(5);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(records).toHaveLength(6);
    expect(records[5]).toMatchObject({ type: 'auth.mtls', outcome: 'failure', address: '192.0.2.1' });
    expect(records[5]?.detail).toBe(
      '295 more failures from this address since 2026-11-22T00:00:00.000Z; the last: simpleenroll; certificate signed by unknown authority',
    );
    expect(records.length + observed.length, 'the metrics count each of them').toBe(300);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(records).toHaveLength(6);
    await failures.record(refusal());
    expect(records, 'a new window').toHaveLength(7);
  });

  test('of 300 different ones twenty have', async () => {
    const { failures, records } = kept();
    for (let n = 0; n < 300; n++) await failures.record(refusal({ subject: `CN=${n}` }));
    expect(records).toHaveLength(20);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(records[20]?.detail).toMatch(/^280 more failures/);
    expect(records).toHaveLength(21);
  });

  test.each<[string, Partial<AuditEvent>, number]>([
    ['another address', { address: '192.0.2.2' }, 6],
    ['another type', { type: 'auth.gssapi' }, 6],
    ['another address of the same IPv6 network', { address: '2001:db8::2' }, 5],
  ])('%s', async (_, changes, expected) => {
    const { failures, records } = kept();
    const address = changes.address?.includes('::') === true ? '2001:db8::1' : '192.0.2.1';
    for (let n = 0; n < 10; n++) await failures.record(refusal({ address }));
    await failures.record(refusal(changes));
    expect(records).toHaveLength(expected);
  });

  test('refusals without an address or a detail are counted as well', async () => {
    const { failures, records } = kept();
    for (let n = 0; n < 7; n++) await failures.record({ type: 'auth.mtls', outcome: 'failure' });
    await failures.close();
    expect(records).toHaveLength(6);
    expect(records[0]).toStrictEqual({ type: 'auth.mtls', outcome: 'failure' });
    expect(records[5]?.detail).toMatch(/^2 more failures from this address since .*; the last: $/);
  });

  test('a stop records what has been counted', async () => {
    const { failures, records } = kept();
    for (let n = 0; n < 7; n++) await failures.record(refusal());
    await failures.close();
    expect(records[5]?.detail).toMatch(/^2 more failures/);
  });

  test('with more addresses than are counted at a time, the oldest count is recorded early', async () => {
    const { failures, records } = kept();
    for (let n = 0; n < 7; n++) await failures.record(refusal());
    for (let n = 0; n < 1000; n++) await failures.record(refusal({ address: `10.0.${n >> 8}.${n & 255}` }));
    expect(records.filter(({ detail }) => detail?.startsWith('2 more failures'))).toHaveLength(1);
  });

  test('long texts are cut', async () => {
    const { failures, records } = kept();
    await failures.record(refusal({ subject: 'a'.repeat(5000), detail: 'b'.repeat(5000) }));
    expect(records[0]?.subject).toBe(`${'a'.repeat(256)}… (5000 characters)`);
    expect(records[0]?.detail).toBe(`${'b'.repeat(1024)}… (5000 characters)`);
  });

  test('a store that cannot write fails the request of an individual record, and logs the failure of a count', async () => {
    let full = false;
    const { failures, log } = kept(() => full);
    for (let n = 0; n < 7; n++) await failures.record(refusal());
    full = true;
    await expect(failures.record(refusal({ detail: 'another' }))).rejects.toThrow('full');
    await failures.close();
    expect(log.lines).toMatchObject([{ level: 'error', fields: { counted: 2, detail: 'full' } }]);
  });
});
