/** When the holder of a certificate should renew it (draft-ietf-lamps-est-renewal-info). */
import { hash } from 'node:crypto';
import type { ConfiguredRenewal } from '../config/schema.ts';
import { type WindowedCertificate, type RenewalRow, replaces } from '../store/renewal-store.ts';

/** Milliseconds since the epoch. */
export interface RenewalWindow {
  readonly start: number;
  readonly end: number;
}

type WindowSettings = Omit<ConfiguredRenewal, 'expected'>;

/** Each certificate gets a window of this part of the campaign, so that clients that choose a time at random stay evenly spread. */
const SLOT = 0.05;
const MINUTE = 60_000;

/** The window of a certificate: that of the first campaign that wants it earlier than the label's own. `end` is always after `start`. */
export function renewalWindow(
  row: WindowedCertificate,
  settings: WindowSettings,
  campaigns: readonly RenewalRow[],
): RenewalWindow {
  let window = ownWindow(row, settings);
  for (const campaign of campaigns) {
    if (!replaces(campaign, row)) continue;
    const slot = slotOf(row.serial, campaign, settings.retry_after * 1000);
    if (slot.start < window.start) window = slot;
    else if (campaign.due < window.end) window = ordered(window.start, campaign.due);
  }
  return window;
}

function ownWindow({ not_before, not_after }: WindowedCertificate, { start, end }: WindowSettings): RenewalWindow {
  const at = (time: number): number =>
    time < 1 ? not_before + time * (not_after - not_before) : Math.max(not_before, not_after - time * 1000);
  return ordered(Math.min(at(start), not_after - 2000), Math.min(at(end), not_after));
}

/**
 * Evenly spread, by a hash of the serial number. If there is time, the first slot begins when all clients have asked again (`retry_after`):
 * otherwise those that learn of a slot in the past would add to those whose slot has come.
 */
function slotOf(serial: string, { begins, due }: RenewalRow, retryAfter: number): RenewalWindow {
  const from = due - begins >= 2 * retryAfter ? begins + retryAfter : begins;
  const length = due - from;
  const width = Math.max(Math.min(length, MINUTE), length * SLOT);
  const place = Number.parseInt(hash('sha256', serial, 'hex').slice(0, 12), 16) / 2 ** 48;
  const start = from + place * (length - width);
  return ordered(start, start + width);
}

/** RFC 3339 times are written in seconds here. */
function ordered(start: number, end: number): RenewalWindow {
  const first = Math.floor(start / 1000) * 1000;
  return { start: first, end: Math.max(Math.floor(end / 1000) * 1000, first + 1000) };
}
