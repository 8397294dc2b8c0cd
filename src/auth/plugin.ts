/** One way to authenticate on the EST listener: a client certificate, Kerberos, a one-time password. */
import type { AuditEvent } from '../audit/event.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import type { Identity, PresentedCredentials } from './identity.ts';

/** Which credentials count where a request is sent to. */
export interface CredentialRules {
  /** A credential of another method is not looked at; undefined: every method that is switched on counts. */
  readonly methods: readonly Identity['method'][] | undefined;
  /** @param path of a client certificate that is good: its own first, the trust anchor last */
  accepts(path: readonly Certificate[]): Promise<boolean>;
  /** Whether a certificate with this path is under a CA of this server. @throws EstuaryError 503 while a CA is not known */
  isOfThisServer(path: readonly Certificate[]): boolean;
}

/** What the sender wants, as far as authentication depends on it. */
export interface AuthContext {
  /** E.g. `simpleenroll`. */
  readonly operation: string;
  readonly caLabel: string;
  /** Only a client certificate is evaluated (simplereenroll, fullcmc, csrattrs by policy). */
  readonly certificateOnly: boolean;
  /** A client certificate may have expired this long ago: the CA's renewal_grace_days on simplereenroll, else 0. */
  readonly expiredGraceSeconds: number;
  /** Absent: every credential that is good counts. */
  readonly rules?: CredentialRules;
  /** Milliseconds. */
  readonly now: number;
  /**
   * Where the audit events of a success go when the caller commits them with its next transaction. Without it they
   * are committed before `authenticate` resolves.
   */
  readonly events?: AuditEvent[];
}

/** A credential is good, and does not count where the request is sent to: it is as if it had not been presented. */
export class NotAccepted extends Error {
  readonly identity: Identity;

  constructor(identity: Identity) {
    super('a credential that does not count here');
    this.identity = identity;
  }
}

export interface AuthPlugin {
  readonly method: Identity['method'];
  /** The plugin commits the audit event of a failure itself; otherwise the authenticator does. */
  readonly auditsFailures?: boolean;
  /** What the audit log adds where a client certificate has authenticated: a claim of this method that nobody verified. */
  hint?(presented: PresentedCredentials): string | undefined;
  /**
   * The sender's identity; undefined when nothing of this method was presented.
   *
   * @throws EstuaryError 401 when something was presented and failed; 500 or 503 when it could not be checked; NotAccepted
   */
  authenticate(presented: PresentedCredentials, context: AuthContext): Promise<Identity | undefined>;
}
