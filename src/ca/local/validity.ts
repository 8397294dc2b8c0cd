/** For how long a certificate is valid. */
import { randomInt } from 'node:crypto';
import { failed } from '../../errors.ts';

/** As far as it says so. */
export interface ValidityProfile {
  readonly validity_days: number;
  /** In place of the days. */
  readonly validity_seconds?: number | undefined;
  /** By up to so much it is shorter, by chance. */
  readonly validity_spread_seconds?: number | undefined;
  /** By so much it begins before it is issued; 60 where it is absent. */
  readonly backdate_seconds?: number | undefined;
}

interface Period {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Clocks of clients lag; a certificate must not be "not yet valid" when it arrives. Seconds. */
const BACKDATING = 60;
const DAY = 86_400_000;

/**
 * Now (a little backdated) for as long as the profile says, within the CA certificate's own validity.
 *
 * @param time milliseconds since the epoch @param days where somebody else says how long
 * @throws EstuaryError 500 `CA_NOT_VALID`
 */
export function validityPeriod(profile: ValidityProfile, ca: Period, time: number, days: number | undefined): Period {
  const now = Math.floor(time / 1000) * 1000;
  if (now < ca.notBefore.getTime() || now >= ca.notAfter.getTime())
    throw failed('CA_NOT_VALID', "The CA's certificate is not valid now.", { detail: expiry(ca) });
  const backdating = profile.backdate_seconds ?? BACKDATING;
  const notBefore = Math.max(now - backdating * 1000, ca.notBefore.getTime());
  // both ends belong to the period (RFC 5280 §4.1.2.5)
  const length = days === undefined ? usualLength(profile, backdating) : days * DAY;
  const notAfter = Math.min(notBefore + length - 1000, ca.notAfter.getTime());
  return { notBefore: new Date(notBefore), notAfter: new Date(notAfter) };
}

/** @param backdating seconds @returns milliseconds */
function usualLength(profile: ValidityProfile, backdating: number): number {
  const { validity_days, validity_seconds, validity_spread_seconds = 0 } = profile;
  const seconds = validity_seconds ?? (validity_days * DAY) / 1000;
  // of what is left once it is issued, so that it is never over by then
  const spread = Math.min(validity_spread_seconds, Math.floor((seconds - backdating) / 2));
  return (seconds - randomInt(spread + 1)) * 1000;
}

/** In words. */
export const expiry = ({ notBefore, notAfter }: Period): string =>
  `valid from ${notBefore.toISOString()} to ${notAfter.toISOString()}`;
