/** Authenticates administrators by bearer token or client certificate, independently of the EST listener. */
import type { Config } from '../config/schema.ts';
import type { AdminRole } from '../config/vocabulary.ts';
import { describe, forbidden, isRefusal, isUnauthenticated, notFound, unauthorized } from '../errors.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { IntermediateStore } from '../store/intermediate-store.ts';
import type { SessionRow } from '../store/session-store.ts';
import type { ClientTrust } from './mtls/client-trust.ts';
import type { FailureRecords } from './failure-records.ts';
import type { PresentedCredentials } from './identity.ts';
import { Administrators, oidcIdentity, type AdminClient, type AdminIdentity } from './administrators.ts';
import { holderOf } from './certificate-holder.ts';
import { IntermediateMemory } from './mtls/intermediate-memory.ts';
import { validatePresented } from './mtls/mtls.ts';
import { checkNotRevokedHere } from './mtls/revocation-lists.ts';
import type { OidcClaims, OidcSignIn } from './oidc/oidc-sign-in.ts';
import { presentedCertificates } from './mtls/presented-certificates.ts';
import { requestIdField } from '../request-context.ts';

/** The settings in force; a reload replaces them as a whole. */
export interface AdminAuthSettings {
  readonly mode: Config['admin']['tls']['mode'];
  /** From admin.tls.trust_anchors; undefined in mode `none`. */
  readonly trust: ClientTrust | undefined;
  readonly bearer_token: Config['admin']['bearer_token'];
  /** `[admin.oidc]`. */
  readonly oidc?: OidcSignIn | undefined;
  readonly clients?: readonly AdminClient[];
  /** Roles of certificates without an entry; default: `["admin"]` if there are no entries, otherwise none. */
  readonly default_roles?: readonly AdminRole[] | undefined;
}

type SessionOwner = Pick<SessionRow, 'administrator' | 'method' | 'claims' | 'certificate'>;

const CODE = 'ADMIN_AUTHENTICATION_REQUIRED';
const MAX_HEADER = 4096;

export class AdminAuthenticator {
  readonly #settings: () => AdminAuthSettings;
  readonly #store: CertificateStore & IntermediateStore;
  readonly #failures: FailureRecords;
  readonly #memory: IntermediateMemory;
  readonly #now: () => number;
  #known: { readonly settings: AdminAuthSettings; readonly administrators: Administrators } | undefined;

  constructor(
    settings: () => AdminAuthSettings,
    store: CertificateStore & IntermediateStore,
    failures: FailureRecords,
    now: () => number = Date.now,
  ) {
    this.#settings = settings;
    this.#store = store;
    this.#failures = failures;
    this.#memory = new IntermediateMemory(store);
    this.#now = now;
  }

  /**
   * A valid certificate suffices in every mode except `none`. A bearer token suffices if tokens are enabled and the
   * mode is not `required`. An invalid token is a failure even with a valid certificate. `required_for_reenroll` means
   * `optional`.
   * @throws EstuaryError 401; a failure, unlike missing credentials, is audited as `auth.admin`. 500 or 503 from the
   * store
   */
  async authenticate(presented: PresentedCredentials): Promise<AdminIdentity> {
    const settings = this.#settings();
    const failures: string[] = [];
    let byCertificate: AdminIdentity | undefined;
    try {
      byCertificate = await this.#byCertificate(settings, presented);
    } catch (error) {
      if (!isUnauthenticated(error)) throw error;
      failures.push(describe(error));
    }
    if (settings.bearer_token.enabled && presented.authorization !== undefined) {
      const holder = bearerHolder(presented.authorization, this.#administrators(settings));
      if (holder === undefined) return this.#refuse(presented.address, [...failures, 'bearer token not valid']);
      if (holder.notAfter !== undefined && holder.notAfter <= this.#now())
        return this.#refuse(presented.address, [...failures, `the bearer token of ${holder.display} has expired`]);
      if (byCertificate === undefined && settings.mode !== 'required') return holder;
    }
    return byCertificate ?? this.#refuse(presented.address, failures);
  }

  /**
   * The administrator of a session, with the roles in force.
   * @returns a text for the audit log if the session is no longer valid
   * @throws EstuaryError 500 or 503 from the store
   */
  async ofSession(session: SessionOwner, presented: PresentedCredentials): Promise<AdminIdentity | string> {
    const settings = this.#settings();
    const shown = presentedCertificates(presented)?.identity;
    if (session.certificate !== null && session.certificate !== shown)
      return 'it was started with another client certificate';
    const admin = await this.#ofSession(settings, session, presented);
    if (typeof admin === 'string') return admin;
    return admin?.credential === session.administrator
      ? admin
      : 'the configuration no longer contains its administrator';
  }

  #ofSession(settings: AdminAuthSettings, session: SessionOwner, presented: PresentedCredentials) {
    const { method, administrator, claims } = session;
    if (method === 'mtls') return this.#byCertificate(settings, presented).catch(reasonOf);
    if (method === 'bearer') return this.#byTokenKey(settings, administrator);
    // The store has them as they were signed in with.
    return settings.oidc && oidcIdentity(settings.oidc.settings, JSON.parse(claims ?? '{}') as OidcClaims);
  }

  /** Whether administrators may sign in at an OpenID provider. */
  get hasOidc(): boolean {
    return this.#settings().oidc !== undefined;
  }

  /** @throws EstuaryError 404: nobody signs in at an OpenID provider; 503 */
  beginOidc(): ReturnType<OidcSignIn['begin']> {
    return this.#oidc().begin();
  }

  /**
   * @param search as for {@link OidcSignIn.complete}, like `sealed`
   * @throws EstuaryError 401, audited as `auth.admin`; 403: without a role; 404; 503
   */
  async completeOidc(search: string, sealed: string | undefined, address: string): Promise<AdminIdentity> {
    const oidc = this.#oidc();
    const failure = { type: 'auth.admin', outcome: 'failure', address, method: 'oidc' } as const;
    try {
      const claims = await oidc.complete(search, sealed);
      const admin = oidcIdentity(oidc.settings, claims);
      if (admin !== undefined) return admin;
      throw forbidden('OIDC_NO_ROLE', 'your groups at the OpenID provider have no role here', {
        detail: `${oidc.settings.roles_claim} of ${claims.subject}: ${claims.values.join(', ') || 'no value'}${claims.omitted === undefined ? '' : ` (the provider left out "${claims.omitted}" for its size: _claim_names)`}`,
      });
    } catch (error) {
      if (isRefusal(error)) {
        const detail = error.detail ?? error.message;
        await this.#failures.record({ ...failure, ...requestIdField(), detail });
      }
      throw error;
    }
  }

  #oidc(): OidcSignIn {
    const { oidc } = this.#settings();
    if (oidc === undefined) throw notFound('NOT_FOUND', 'there is nothing at this path');
    return oidc;
  }

  #byTokenKey(settings: AdminAuthSettings, key: string): AdminIdentity | string | undefined {
    if (!settings.bearer_token.enabled || settings.mode === 'required') return 'bearer tokens are no longer accepted';
    const holder = this.#administrators(settings).withTokenKey(key);
    return holder?.notAfter !== undefined && holder.notAfter <= this.#now()
      ? `the bearer token of ${holder.display} has expired`
      : holder;
  }

  /** Cached per settings. */
  #administrators(settings: AdminAuthSettings): Administrators {
    if (this.#known?.settings !== settings) {
      const { bearer_token, clients, default_roles, trust } = settings;
      const { tokens } = bearer_token;
      const administrators = new Administrators({ tokens, clients, default_roles, anchors: trust?.anchors });
      this.#known = { settings, administrators };
    }
    return this.#known.administrators;
  }

  async #byCertificate(
    settings: AdminAuthSettings,
    presented: PresentedCredentials,
  ): Promise<AdminIdentity | undefined> {
    const { mode, trust } = settings;
    const certificates = presentedCertificates(presented);
    if (mode === 'none' || trust === undefined || certificates === undefined) return undefined;
    const validated = await validatePresented(trust, certificates, this.#now(), { memory: this.#memory });
    const holder = holderOf(validated);
    await checkNotRevokedHere(this.#store, holder);
    return this.#administrators(settings).withCertificate(holder);
  }

  async #refuse(address: string, failures: readonly string[]): Promise<never> {
    if (failures.length === 0) throw unauthorized(CODE, 'admin authentication required');
    const detail = failures.join('; ');
    await this.#failures.record({ type: 'auth.admin', outcome: 'failure', address, ...requestIdField(), detail });
    throw unauthorized(CODE, 'admin authentication failed', { detail });
  }
}

/** Why authentication failed. @throws any other error */
function reasonOf(error: unknown): string {
  if (!isUnauthenticated(error)) throw error;
  return describe(error);
}

/** The holder of the token in a header, if any. */
function bearerHolder(authorization: string, administrators: Administrators): AdminIdentity | undefined {
  if (authorization.length > MAX_HEADER) return undefined;
  const token = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1];
  return token === undefined ? undefined : administrators.withToken(token);
}
