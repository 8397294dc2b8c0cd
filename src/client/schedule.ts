/** When the next step of a certificate is due. Reads only, and loads no HTTP. */
import type { ClientErrorCode } from './client-error.ts';
import type { CertificateConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import { accessOf, CertificateFolder, type LiveCertificate, passwordFile } from './keep/certificate-folder.ts';
import { changeOf, type State } from './keep/state.ts';
import { hasNewPassword } from './password.ts';
import { clockProblem, renewalTime } from './status.ts';

export type ScheduleContext = Pick<ClientContext, 'disk' | 'env' | 'now'>;

/** The clock of a starting machine is usually set soon. */
export const CLOCK_RETRY = 60_000;
/** Errors after which only another password, or an administrator, can help. */
export const REJECTIONS: ReadonlySet<string> = new Set<ClientErrorCode>([
  'CREDENTIALS_MISSING',
  'DEVICE_DISABLED',
  'REFUSED',
]);
const LEAST_AGE = 3_600_000;

export class Schedule {
  readonly folder: CertificateFolder;
  readonly #config: CertificateConfig;
  readonly #context: ScheduleContext;

  constructor(config: CertificateConfig, context: ScheduleContext) {
    this.#config = config;
    this.#context = context;
    this.folder = new CertificateFolder(config.folder, context.disk, accessOf(config));
  }

  /** When something is due. Reads only. */
  due(): number {
    const now = this.#context.now();
    try {
      const live = this.folder.live();
      const state = this.folder.state();
      const { nextAttempt, nextHook, announced } = state;
      if (clockProblem(now, live?.certificate) !== undefined) return now + CLOCK_RETRY;
      const successor = this.folder.successor();
      const isUnderWay = live === undefined || this.folder.pending() !== undefined;
      const certificate =
        successor === undefined
          ? Math.max(isUnderWay ? 0 : this.renewalTime(live), nextAttempt)
          : successor.certificate.notBefore.getTime();
      const isTold = live === undefined || announced === changeOf(live.version, this.folder.caPem());
      const isSettled = successor === undefined && !isUnderWay && state.failures === 0;
      const ask = isSettled ? this.askAt(live) : Infinity;
      if (this.hasNewPassword(state)) return now;
      return Math.min(certificate, ask, isTold ? Infinity : nextHook);
    } catch {
      // The step reports the problem.
      return now;
    }
  }

  renewalTime(live: LiveCertificate): number {
    const { renewal } = this.folder.state();
    const suggested = renewal?.version === live.version ? renewal.at : 0;
    if (suggested === 0 || suggested >= live.certificate.notAfter.getTime())
      return renewalTime(live.certificate, this.#config.renew_at / 100);
    // A server that suggests a time in the past for each new certificate must not cause a renewal after the other.
    return Math.max(suggested, live.certificate.notBefore.getTime() + Math.min(LEAST_AGE, lifetimeOf(live) / 2));
  }

  askAt({ version }: LiveCertificate): number {
    const { renewal } = this.folder.state();
    return renewal?.version === version ? renewal.ask : 0;
  }

  /** Whether an operator supplied a password after the server rejected the device or its certificate. */
  hasNewPassword({ lastError, rejected }: State): boolean {
    if (!REJECTIONS.has(lastError?.code ?? '')) return false;
    const former = [...this.folder.spentPasswords(), ...(rejected === undefined ? [] : [rejected])];
    return hasNewPassword(this.credentials(), this.#context, former);
  }

  /** With the password that an operator put into the folder, if any. */
  credentials(): CertificateConfig {
    const file = passwordFile(this.#config);
    if (this.#context.disk.read(file) === undefined) return this.#config;
    return { ...this.#config, otp_file: file, otp_env: undefined, otp_reusable: false };
  }
}

export const lifetimeOf = ({ certificate }: LiveCertificate): number =>
  certificate.notAfter.getTime() - certificate.notBefore.getTime();
