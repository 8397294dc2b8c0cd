/** Suggested windows (draft-ietf-lamps-est-renewal-info), alone and in a campaign. */
import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type RenewalWindow, renewalWindow } from '../../src/ca/renewal-window.ts';
import type { IssuedCertificate, RenewalRow } from '../../src/store/renewal-store.ts';
import { certificateRow, reservation } from '../store/support.ts';
import { T0 } from '../store/rows.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SETTINGS = { start: 0.67, end: 0.9, retry_after: 6 * 3600 };

const issued = (more: Partial<IssuedCertificate> = {}): IssuedCertificate => ({
  ...certificateRow(reservation()),
  not_before: T0,
  not_after: T0 + 100 * DAY,
  issued_at: T0,
  ca: 'devices',
  ...more,
});
const campaign = (more: Partial<RenewalRow> = {}): RenewalRow => ({
  ...{ id: 'one', selection: { ca: 'devices' }, begins: T0 + DAY, due: T0 + 5 * DAY, created_by: 'Ada' },
  ...{ reason: null, explanation_url: null, overdue_at: null },
  ...more,
});

describe('the window of a label', () => {
  test('is a part of the lifetime, or so many seconds before the expiry', () => {
    expect(renewalWindow(issued(), SETTINGS, [])).toEqual({ start: T0 + 67 * DAY, end: T0 + 90 * DAY });
    const seconds = { ...SETTINGS, start: 30 * 86_400, end: 10 * 86_400 };
    expect(renewalWindow(issued(), seconds, [])).toEqual({ start: T0 + 70 * DAY, end: T0 + 90 * DAY });
  });

  test('RFC 9773 §4.2: end is after start, also for a certificate that is shorter than the window', () => {
    const short = issued({ not_after: T0 + HOUR });
    for (const settings of [
      { ...SETTINGS, start: 86_400, end: 43_200 },
      { ...SETTINGS, start: 0.5, end: 7200 },
    ]) {
      const { start, end } = renewalWindow(short, settings, []);
      expect(end).toBeGreaterThan(start);
      expect(end).toBeLessThanOrEqual(short.not_after);
    }
  });
});

describe('the window of a campaign', () => {
  test('is for matching certificates that were issued before it, and lies within it', () => {
    const own = renewalWindow(issued(), SETTINGS, []);
    const { begins, due } = campaign();
    const { start, end } = renewalWindow(issued(), SETTINGS, [campaign()]);
    expect([start >= begins, end <= due, end > start]).toEqual([true, true, true]);
    const others: Partial<IssuedCertificate>[] = [{ ca: 'lab' }, { issued_at: begins + 1 }];
    for (const other of others) expect(renewalWindow(issued(other), SETTINGS, [campaign()])).toEqual(own);
  });

  test.each<readonly [name: string, selection: RenewalRow['selection'], matches: boolean]>([
    ['a part of the subject', { subject: 'SENSOR' }, true],
    ['another subject', { subject: 'press' }, false],
    ['a part of a name', { san: 'dns:sensor' }, true],
    ['a device', { device: 'tag-1' }, true],
    ['another device', { device: 'tag-2' }, false],
    ['issued after', { issued_after: T0 - 1 }, true],
    ['issued before', { issued_after: T0 + 1 }, false],
    ['expires before', { expires_before: T0 + 101 * DAY }, true],
    ['expires later', { expires_before: T0 + 99 * DAY }, false],
    ['a serial number', { serial: '0a0b' }, true],
    ['another fingerprint', { fingerprint_sha256: 'ff'.repeat(32) }, false],
  ])('filters as the certificate list does: %s', (_, selection, matches) => {
    const row = issued({ subject: 'CN=sensor-1', sans: ['DNS:sensor-1.example'], device: 'tag-1', serial: '0a0b' });
    const { start } = renewalWindow(row, SETTINGS, [campaign({ selection })]);
    expect(start < T0 + 67 * DAY).toBe(matches);
  });

  test('leaves a certificate alone whose own window is earlier', () => {
    const old = issued({ not_before: T0 - 90 * DAY, not_after: T0 + 10 * DAY });
    expect(renewalWindow(old, SETTINGS, [campaign()])).toEqual({ start: T0 - 23 * DAY, end: T0 });
  });
});

/** Requests in each of 100 parts of a campaign: clients ask for their window at every Retry-After, from any time on. */
function fleet(clients: number, { begins, due }: RenewalRow): { readonly peak: number; readonly late: number } {
  const parts = new Array<number>(100).fill(0);
  const retryAfter = SETTINGS.retry_after * 1000;
  let late = 0;
  for (let n = 0; n < clients; n++) {
    const chance = (what: string): number =>
      Number.parseInt(hash('sha256', `${what} ${n}`, 'hex').slice(0, 8), 16) / 2 ** 32;
    const row = issued({ serial: hash('sha256', `serial ${n}`, 'hex').slice(0, 32) });
    const asked = begins + chance('phase') * retryAfter;
    const window: RenewalWindow = renewalWindow(row, SETTINGS, [campaign({ begins, due })]);
    const chosen = window.start + chance('time') * (window.end - window.start);
    const at = Math.max(asked, chosen);
    if (at > due) late++;
    const part = Math.min(99, Math.floor(((at - begins) / (due - begins)) * 100));
    parts[part] = (parts[part] ?? 0) + 1;
  }
  return { peak: Math.max(...parts) / (clients / 100), late };
}

test.each([
  ['of four days', 4 * DAY, 1.5],
  ['of a day', DAY, 2],
  ['as long as three polls', 18 * HOUR, 2],
])('a fleet of 50,000 is replaced within a campaign %s, without a peak', (_, length, most) => {
  const { peak, late } = fleet(50_000, campaign({ due: campaign().begins + length }));
  expect(late).toBe(0);
  expect(peak, 'of the mean rate').toBeLessThanOrEqual(most);
});
