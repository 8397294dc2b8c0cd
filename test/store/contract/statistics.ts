import { describe, expect, test } from 'vitest';
import { event, T0 } from '../rows.ts';
import { issue, type NewDatabase } from './support.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Math.floor(T0 / DAY) * DAY;
const FAILURE = { outcome: 'failure' } as const;

export function statisticsStoreContract(newDatabase: NewDatabase): void {
  describe('StatisticsStore', () => {
    test('counts what the audit log says, by the hour or by the day, of one CA or of all', async () => {
      let now = START + HOUR;
      const store = await newDatabase().open(() => now);
      await store.audit([
        event('certificate.issued', { ca: 'devices', detail: 'simpleenroll' }),
        event('certificate.issued', { ca: 'devices', operation: 'simplereenroll' }),
        event('certificate.issued', { ca: 'lab', detail: 'fullcmc' }),
        event('auth.otp', { ...FAILURE, ca: 'lab' }),
        event('auth.otp', { ca: 'lab' }),
        event('admin.access'),
      ]);
      now += HOUR - 1;
      await store.audit([event('certificate.denied', { ...FAILURE, ca: 'devices' })]);
      now += 1;
      await store.audit([
        event('certificate.issued', { ca: 'devices', detail: 'serverkeygen' }),
        event('certificate.failed', { ...FAILURE, ca: 'devices' }),
        event('certificate.revoked', { ca: 'devices' }),
        event('request.queued', { ca: 'devices' }),
        event('auth.admin', FAILURE),
      ]);
      const count = async (interval: number, ca?: string, since = START, until = START + DAY) =>
        (await store.countEvents({ since, until, interval, ca })).map(
          ({ time, what, count: n }) => `${(time - START) / HOUR} ${what} ${n}`,
        );
      expect((await count(HOUR)).sort()).toEqual(
        [
          ['1 issued 2', '1 refused 1', '1 renewed 1', '1 unauthenticated 1'],
          ['2 failed 1', '2 issued 1', '2 queued 1', '2 revoked 1', '2 unauthenticated 1'],
        ].flat(),
      );
      expect((await count(DAY)).sort()).toEqual(
        ['failed 1', 'issued 3', 'queued 1', 'refused 1', 'renewed 1', 'revoked 1', 'unauthenticated 2'].map(
          (label) => `0 ${label}`,
        ),
      );
      expect((await count(DAY, 'lab')).sort()).toEqual(['0 issued 1', '0 unauthenticated 1']);
      expect(await count(HOUR, 'devices', START + HOUR, START + 2 * HOUR)).toHaveLength(3);
      expect(await count(HOUR, undefined, START + 3 * HOUR)).toEqual([]);
    });

    test('rejected requests by label and code, added to what the hour has, and together by the hour', async () => {
      const store = await newDatabase().open(() => START);
      const locked = { ca: 'devices', code: 'LOCKED_OUT', count: 100 };
      await store.addRejections(START / HOUR - 1, [locked]);
      await store.addRejections(START / HOUR, [locked, { ca: '', code: 'NOT_FOUND', count: 2 }]);
      await store.addRejections(START / HOUR, [{ ...locked, count: 51 }]);
      await store.audit([event('auth.otp', { ...FAILURE, ca: 'devices' })]);
      expect(await store.countRejections(START)).toEqual([
        { ca: '', code: 'NOT_FOUND', count: 2 },
        { ...locked, count: 151 },
      ]);
      expect(await store.countEvents({ since: START, until: START + DAY, interval: DAY })).toEqual([
        { time: START, what: 'rejected', count: 153 },
        { time: START, what: 'unauthenticated', count: 1 },
      ]);
    });

    test('a count stays when its records have left for an archive', async () => {
      const store = await newDatabase().open(() => START);
      await store.audit([event('certificate.issued', { ca: 'devices' })]);
      const [line] = await store.auditLines(0, 1);
      const hash = /"hash":"(\w+)"\}$/.exec(line?.line ?? '')?.[1] ?? '';
      await store.noteArchived({ first: 1, last: 1, hash }, 'x');
      expect(await store.purgeArchived()).toBe(1);
      expect(await store.countEvents({ since: START, until: START + DAY, interval: DAY })).toEqual([
        { time: START, what: 'issued', count: 1 },
      ]);
    });

    test('certificates by the time when they expire, with the bounds of expires_before: those that are valid, and no others', async () => {
      const store = await newDatabase().open();
      for (const days of [-1, 0, 0.5, 1, 6.9, 7, 400]) await issue(store, { not_after: T0 + days * DAY });
      const revoked = await issue(store, { not_after: T0 + DAY });
      await store.revokeCertificate(
        { ca: revoked.ca, serial: revoked.serial, revoked_at: T0, reason: 'superseded', invalidity_date: null },
        [],
      );
      expect(await store.countCertificatesByEnd(T0, [T0 + DAY, T0 + 7 * DAY])).toEqual([2, 2, 2]);
      expect(await store.countCertificatesByEnd(T0, [])).toEqual([6]);
    });
  });
}
