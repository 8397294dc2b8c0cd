/** What a reload of the configuration comes to, for whoever has asked for it. */
import type { CertificateEnd } from './material/certificate-ends.ts';
import type { Warning } from './problem.ts';

export interface ReloadOrder {
  /** Says what would change, and changes nothing. */
  readonly dryRun: boolean;
  /** For the audit log; absent: a signal. */
  readonly by?: { readonly subject: string; readonly address: string; readonly request_id: string };
}

/** A certificate that is in force afterwards. */
export interface CertificateInForce extends CertificateEnd {
  /** It was not before. */
  readonly isNew: boolean;
}

export interface ReloadReport {
  /** Changed keys that apply at once. */
  readonly changed: readonly string[];
  /** Changed keys that stay as they were until the next start. */
  readonly needsRestart: readonly string[];
  readonly certificates: readonly CertificateInForce[];
  readonly warnings: readonly Warning[];
}

export type ReloadOutcome =
  | { readonly ok: true; readonly report: ReloadReport }
  /** `reason`: why nothing has changed. */
  | { readonly ok: false; readonly reason: string };

/** Carries out one reload after the other. Never rejects. */
export type Reload = (order: ReloadOrder) => Promise<ReloadOutcome>;
