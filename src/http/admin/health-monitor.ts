import type { CaDependency, HealthReport } from '../../ca/driver.ts';
import { healthOf } from '../../ca/expiry.ts';
import type { Ca } from '../../ca/router.ts';
import { describe } from '../../errors.ts';
import { CLOCK_TOLERANCE } from '../../store/store.ts';

/** A part that takes longer to report its health counts as down. */
const DEADLINE_MS = 5_000;
/** Lifetime of a report. The health calls are public and must not cause work for an HSM or the disk. */
const FRESH_MS = 1_000;

/** The health of the store and the CAs: checked at most once per second, with a deadline. */
export class HealthMonitor {
  readonly #reports = new Map<string, { readonly at: number; readonly report: Promise<HealthReport> }>();
  readonly #store: { checkWritable(): Promise<void> };
  readonly #now: () => number;
  readonly #deadline: number;

  /** @param deadline milliseconds per part */
  constructor(store: { checkWritable(): Promise<void> }, now: () => number, deadline = DEADLINE_MS) {
    this.#store = store;
    this.#now = now;
    this.#deadline = deadline;
  }

  /** Whether the database and the audit log are writable. Never rejects. */
  store(): Promise<HealthReport> {
    return this.#fresh('store', async () => {
      await this.#store.checkWritable();
      return { health: 'ok' };
    });
  }

  /** Whether this machine's clock agrees with the database's. @param skew milliseconds that it is ahead */
  clock(skew: number): HealthReport {
    const off = Math.abs(skew);
    if (off <= CLOCK_TOLERANCE.warning) return { health: 'ok' };
    const detail = `the clocks of this node and the database differ by ${Math.round(off / 1000)} s`;
    return { health: off > CLOCK_TOLERANCE.notReady ? 'down' : 'degraded', detail };
  }

  /** Whether a CA can sign, and until when. Never rejects. */
  ca(ca: Pick<Ca, 'label' | 'driver' | 'certificate'>): Promise<HealthReport> {
    return this.#fresh(`ca:${ca.label}`, () => healthOf(ca, this.#now()));
  }

  /** Whether a CA's external dependency responds. Never rejects. */
  dependency(label: string, dependency: CaDependency): Promise<HealthReport> {
    return this.#fresh(`${dependency.name}:${label}`, () => dependency.health());
  }

  /** Whether Kerberos tickets can be verified. Never rejects. @param missing why they cannot */
  gssapi(missing: () => Promise<string | undefined>): Promise<HealthReport> {
    return this.#fresh('gssapi', async () => {
      const detail = await missing();
      return detail === undefined ? { health: 'ok' } : { health: 'down', detail };
    });
  }

  #fresh(part: string, probe: () => Promise<HealthReport>): Promise<HealthReport> {
    const known = this.#reports.get(part);
    const at = this.#now();
    if (known !== undefined && at >= known.at && at - known.at < FRESH_MS) return known.report;
    const report = withDeadline(probe, this.#deadline);
    this.#reports.set(part, { at, report });
    return report;
  }
}

async function withDeadline(probe: () => Promise<HealthReport>, deadline: number): Promise<HealthReport> {
  const late = Promise.withResolvers<HealthReport>();
  const timer = setTimeout(() => late.resolve({ health: 'down', detail: 'no response in time' }), deadline);
  try {
    return await Promise.race([probe(), late.promise]);
  } catch (error) {
    return { health: 'down', detail: describe(error) };
  } finally {
    clearTimeout(timer);
  }
}
