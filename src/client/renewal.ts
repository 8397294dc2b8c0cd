/** When a certificate is renewed, and when a failed attempt is made again. */
import type { Certificate } from '../pki/x509/certificate.ts';
import type { ClientError } from './client-error.ts';

/** At two thirds of the lifetime, give or take a twentieth of it: a fleet that was enrolled in one hour does not come back in one. */
const RENEWAL_POINT = 2 / 3;
const SPREAD = 0.1;

/**
 * Milliseconds since the epoch. The spread is drawn from the certificate itself: as random as its signature, and the same after a restart.
 *
 * @param point of the lifetime, 0 to 1
 */
export function renewalTime({ notBefore, notAfter, fingerprint }: Certificate, point = RENEWAL_POINT): number {
  const lifetime = notAfter.getTime() - notBefore.getTime();
  const drawn = Number.parseInt(fingerprint.slice(0, 8), 16) / 2 ** 32;
  const spread = Math.min(SPREAD, point / 2, (1 - point) / 2);
  return Math.round(notBefore.getTime() + lifetime * (point + (drawn - 0.5) * spread));
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** After temporary failures, and after those that a person has to fix: a wrong password that is sent often locks the address out. */
const TEMPORARY = { first: 15 * SECOND, longest: HOUR };
const LASTING = { first: 5 * MINUTE, longest: 6 * HOUR };

/**
 * Milliseconds until the next attempt. The delay starts at the server's Retry-After if there is one, doubles with each failure, and is never
 * less than Retry-After. Half of it is random. For short-lived certificates, it is proportional to the lifetime.
 *
 * @param failures consecutive, at least 1
 * @param lifetime milliseconds, of the present certificate
 * @param random 0 to 1
 */
export function retryDelay(error: ClientError, failures: number, lifetime: number | undefined, random: number): number {
  const isTemporary = error.kind === 'later' || error.kind === 'local';
  const { first, longest } = isTemporary ? TEMPORARY : LASTING;
  const most = Math.min(longest, Math.max(SECOND, (lifetime ?? Infinity) / 50));
  const least = (error.retryAfter ?? 0) * SECOND;
  const start = isTemporary && least > 0 ? least : first;
  const delay = Math.min(most, Math.min(start, most) * 2 ** Math.min(failures - 1, 20));
  return Math.round(Math.max(delay * (0.5 + random / 2), least));
}

/** A clock that stands before this was never set: no certificate can be judged by it. Estuary's client did not exist then. */
const EARLIEST = Date.UTC(2026, 0, 1);
/** As certificates are backdated for. */
const TOLERATED = 5 * MINUTE;

/** Why the time of this machine cannot be; undefined: it can. */
export function clockProblem(now: number, live: Certificate | undefined): string | undefined {
  const earliest = Math.max(EARLIEST, (live?.notBefore.getTime() ?? 0) - TOLERATED);
  if (now >= earliest) return undefined;
  return `the clock says ${new Date(now).toISOString()}, which is before ${new Date(earliest).toISOString()}`;
}
