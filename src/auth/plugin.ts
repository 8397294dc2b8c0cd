/** An authentication method of the EST listener. */
import type { AuditEvent } from '../audit/event.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import type { Identity, MtlsIdentity, PresentedCredentials } from './identity.ts';

/** Which credentials the requested label accepts. */
export interface CredentialRules {
  /** Accepted methods; undefined: all enabled ones. */
  readonly methods: readonly Identity['method'][] | undefined;
  /** @param path of a valid client certificate: its own first, the trust anchor last */
  accepts(path: readonly Certificate[]): Promise<boolean>;
  /** Whether the path leads to a CA of this server. @throws EstuaryError 503 while a CA is unknown */
  isOfThisServer(path: readonly Certificate[]): boolean;
}

/** The request properties that authentication depends on. */
export interface AuthContext {
  /** Such as `simpleenroll`. */
  readonly operation: string;
  readonly caLabel: string;
  /** Only a client certificate is evaluated (simplereenroll, fullcmc; csrattrs by policy). */
  readonly certificateOnly: boolean;
  /** Accepted seconds since expiry of a client certificate: renewal_grace_days on simplereenroll, otherwise 0. */
  readonly expiredGraceSeconds: number;
  /** Default: every valid credential is accepted. */
  readonly rules?: CredentialRules;
  /** Whether the label recorded a certificate that only its chain could verify, which is unknown or not valid. */
  readonly awaitsChain?: (certificate: Certificate, now: number) => Promise<boolean>;
  /** Passes of expired certificates count (simplereenroll). @returns how the request is recognized, if it is readable */
  readonly recognition?: (identity: MtlsIdentity) => string | undefined;
  readonly now: number;
  /**
   * Receives the audit events of a success, if the caller commits them with its next transaction. By default they are
   * committed before `authenticate` resolves.
   */
  readonly events?: AuditEvent[];
}

/** A valid credential that the label does not accept; treated as not presented. */
export class NotAccepted extends Error {
  readonly identity: Identity;

  constructor(identity: Identity) {
    super('a credential of a method that this label does not accept');
    this.identity = identity;
  }
}

export interface AuthPlugin {
  readonly method: Identity['method'];
  /** The plugin commits the audit event of a failure; by default the authenticator does. */
  readonly auditsFailures?: boolean;
  /** A remark for the audit log next to a client certificate: this method's unverified claim. */
  hint?(presented: PresentedCredentials): string | undefined;
  /**
   * The sender's identity; undefined without credentials of this method.
   * @throws EstuaryError 401 if the credentials are invalid; 500 or 503 if they could not be checked; NotAccepted
   */
  authenticate(presented: PresentedCredentials, context: AuthContext): Promise<Identity | undefined>;
}
