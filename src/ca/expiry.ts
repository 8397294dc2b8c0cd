/** Warns before a CA expires: certificates cannot outlive the CA's, and creating a new CA takes time. */
import type { Logger } from '../log.ts';
import { every } from '../process/turns.ts';
import type { HealthReport } from './driver.ts';
import type { Ca } from './router.ts';

const DAY = 86_400_000;
/** Days before expiry at which a CA's health becomes `degraded`. */
const NEAR_END = 30;
/** The same for OCSP responders, whose certificates usually last only weeks. */
const DELEGATE_NEAR_END = 7;
const DELEGATE_ENDS = 'the certificate of the OCSP responder expires soon; after that, the CA key signs OCSP responses';

type Expiring = Pick<Ca, 'driver' | 'certificate'>;
type Observed = Expiring & Partial<Pick<Ca, 'fault'>>;

/** Whole days until the CA certificate expires, negative afterwards; undefined while it is unknown. */
export function daysLeft(ca: Expiring, now: number): number | undefined {
  return ca.driver.chain().length === 0 ? undefined : Math.floor((ca.certificate.notAfter.getTime() - now) / DAY);
}

/** The driver's health, reduced from `ok` to `degraded` if the CA certificate expires soon. */
export async function healthOf(ca: Observed, now: number): Promise<HealthReport> {
  if (ca.fault !== undefined) return { health: 'down', detail: ca.fault };
  const report: HealthReport = (await ca.driver.health?.()) ?? { health: 'ok' };
  const days = daysLeft(ca, now);
  return report.health === 'ok' && days !== undefined && days < NEAR_END
    ? { health: 'degraded', detail: ending(ca, days) }
    : report;
}

interface ExpiryWatchOptions {
  readonly cas: () => readonly Ca[];
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

/** Logs a warning for every CA that expires soon, now and daily. Returns the function that stops it. */
export const watchExpiry = (options: ExpiryWatchOptions): (() => void) => every(DAY, () => warnOfExpiry(options));

export function warnOfExpiry({ cas, log, now }: ExpiryWatchOptions): void {
  for (const ca of cas()) {
    const days = daysLeft(ca, now());
    const warning = days === undefined ? undefined : warningOf(ca, days);
    if (warning !== undefined)
      log.warn({ ca: ca.label, days_left: days, not_after: ca.certificate.notAfter.toISOString() }, warning);
    const delegateEnd = ca.driver.statusSigner?.delegate?.certificate.notAfter;
    if (delegateEnd !== undefined && delegateEnd.getTime() - now() < DELEGATE_NEAR_END * DAY)
      log.warn({ ca: ca.label, not_after: delegateEnd.toISOString() }, DELEGATE_ENDS);
  }
}

function warningOf(ca: Ca, days: number): string | undefined {
  if (days < NEAR_END) return ending(ca, days);
  // A CA that signs its own revocation data takes the validity from the profile.
  return ca.driver.statusSigner !== undefined && days < ca.profile.validity_days
    ? `issued certificates expire with the CA certificate, before validity_days (${ca.profile.validity_days})`
    : undefined;
}

function ending({ certificate }: Expiring, days: number): string {
  const at = certificate.notAfter.toISOString();
  if (days < 0) return `the CA certificate expired on ${at}`;
  return `the CA certificate expires in ${days} ${days === 1 ? 'day' : 'days'}, on ${at}`;
}
