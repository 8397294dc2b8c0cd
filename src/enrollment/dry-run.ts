/**
 * Dry run of a request: the pipeline up to the reservation, for a sender that an administrator names. Stores, audits,
 * reserves, queues and signs nothing, and uses no password (/admin/check).
 */
import type { ClientIdBinding, GssapiIdentity, Identity, OtpIdentity } from '../auth/identity.ts';
import { NotAccepted, type AuthPlugin } from '../auth/plugin.ts';
import type { Principal } from '../auth/gssapi/principal.ts';
import type { Ca } from '../ca/router.ts';
import { countsAt } from '../config/rules/names.ts';
import { conflict, EstuaryError, forbidden, unauthorized } from '../errors.ts';
import type { CsrContent } from '../pki/pkcs10/csr-content.ts';
import { formatGeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import type { RequestRow } from '../store/request-store.ts';
import { Authenticated, credentialRules } from './authenticated.ts';
import type { Allowed } from './allowed.ts';
import type { Enrollment } from './enrollment.ts';
import { deviceNotRegistered } from './request.ts';

export type AssumedSender =
  /** A requester with this client_id: of a one-time password, a directory or an identity provider. */
  | { readonly kind: 'client_id'; readonly clientId: string }
  | { readonly kind: 'principal'; readonly principal: Principal }
  /** DER of the holder's certificate and its intermediates. */
  | { readonly kind: 'certificate'; readonly der: Buffer; readonly further: readonly Buffer[] }
  /** A device by ID, however it authenticates. `known`: the administrator may see it. */
  | { readonly kind: 'device'; readonly id: string; readonly known: boolean };

export interface DryRunRequest {
  readonly requestId: string;
  readonly address: string;
  readonly ca: Ca;
  /** DER and its names; undefined if they are unreadable. */
  readonly der: Buffer;
  readonly csr: Pick<CsrContent, 'subject' | 'subjectAltNames'> | undefined;
  readonly as: AssumedSender;
}

/** A queued request whose approval is simulated. */
interface DryRunRow extends Pick<DryRunRequest, 'requestId' | 'address' | 'ca'> {
  readonly row: RequestRow;
}

export interface Verdict {
  readonly verdict: 'issue' | 'queue' | 'refuse';
  readonly code?: string;
  readonly message?: string;
  /** RFC 4514; for a rejection before the decision, the request's names. */
  readonly subject: string;
  readonly sans: readonly string[];
  /** undefined: nothing would be issued, or a remote CA decides. */
  readonly notAfter: number | undefined;
}

export interface DryRunOptions {
  readonly enrollment: Pick<Enrollment, 'dryRun' | 'dryRunQueued'>;
  readonly now: () => number;
  /** Enabled methods. The plugin for certificates stores nothing. */
  readonly otp: boolean;
  /** `bind` of LDAP and JWT. */
  readonly bindings: Readonly<Record<'ldap' | 'jwt', ClientIdBinding | undefined>>;
  readonly mtls: Pick<AuthPlugin, 'authenticate'> | undefined;
  readonly gssapi: { readonly identityOf: (principal: Principal) => GssapiIdentity } | undefined;
}

/** Internal failures, which are no verdict on the request. */
const OURS = /^(STORE|AUDIT|INTERNAL)_/;

export class DryRun {
  readonly #options: DryRunOptions;

  constructor(options: DryRunOptions) {
    this.#options = options;
  }

  /** @throws EstuaryError 500 or 503 from the store: no verdict */
  async run(request: DryRunRequest): Promise<Verdict> {
    const { csr } = request;
    const asked = {
      subject: csr === undefined ? '' : formatName(csr.subject),
      sans: csr?.subjectAltNames.map(formatGeneralName) ?? [],
    };
    try {
      const identity = await this.#identity(request);
      const { requestId, address, ca, der: body } = request;
      const received = {
        requestId,
        address,
        ca,
        body,
        operation: 'simpleenroll',
        linking: { kind: 'carried' },
      } as const;
      const authenticated = Authenticated.forDryRun(received, identity);
      const { allowed, queued } = await this.#options.enrollment.dryRun(authenticated, body);
      return { verdict: queued ? 'queue' : 'issue', ...certified(allowed) };
    } catch (error) {
      return refused(error, asked);
    }
  }

  /**
   * The outcome if a queued request was approved and polled now. Its requester was authenticated before it was queued.
   * @throws EstuaryError 409 `VERDICT_UNKNOWN` if it depends on what the requester presents; 500 or 503 from the store
   */
  async queued({ requestId, address, ca, row }: DryRunRow): Promise<Verdict> {
    const reason = whyUnknown(ca, row);
    if (reason !== undefined) throw conflict('VERDICT_UNKNOWN', reason);
    const received = { requestId, address, ca, body: row.csr, linking: { kind: 'carried' } } as const;
    const poll = Authenticated.forDryRun(
      { ...received, operation: 'simpleenroll' },
      passwordHolder(requestId, row.requester),
    );
    try {
      return { verdict: 'issue', ...certified(await this.#options.enrollment.dryRunQueued(poll, row)) };
    } catch (error) {
      return refused(error, row);
    }
  }

  /** Uses the first method with a client_id that the label accepts. @throws EstuaryError 401 */
  #clientOf(client_id: string, requestId: string, { config }: Ca): Identity {
    const { otp, bindings } = this.#options;
    if (otp && countsAt(config, 'otp')) return passwordHolder(requestId, client_id);
    const described = (['ldap', 'jwt'] as const).find(
      (method) => bindings[method] !== undefined && countsAt(config, method),
    );
    const binding = described && bindings[described];
    if (described === undefined || binding === undefined) throw uncounted('one-time passwords, LDAP and JWT');
    const base = { requester: `${described}:dryRun ${requestId}`, display: client_id, client_id, binding };
    return described === 'ldap'
      ? { ...base, method: described, attributes: new Map() }
      : { ...base, method: described, attributes: new Map(), token: undefined };
  }

  /** @throws EstuaryError 401, 403 as a request with such a credential */
  async #identity({ requestId, address, ca, as }: DryRunRequest): Promise<Identity> {
    const { mtls, gssapi } = this.#options;
    switch (as.kind) {
      case 'client_id':
        return this.#clientOf(as.clientId, requestId, ca);
      case 'principal':
        if (gssapi === undefined || !countsAt(ca.config, 'gssapi')) throw uncounted('Kerberos tickets');
        return gssapi.identityOf(as.principal);
      case 'certificate':
        if (mtls === undefined || !countsAt(ca.config, 'mtls')) throw uncounted('client certificates');
        return certificateHolder(mtls, { ca, address, now: this.#options.now() }, as);
      case 'device':
        if (!as.known) throw deviceNotRegistered('there is no such device');
        return passwordHolder(requestId, as.id);
    }
  }
}

/** @throws an error that is not a rejection */
function refused(error: unknown, { subject, sans }: Pick<Verdict, 'subject' | 'sans'>): Verdict {
  if (!(error instanceof EstuaryError) || OURS.test(error.code)) throw error;
  return { verdict: 'refuse', code: error.code, message: error.message, subject, sans, notAfter: undefined };
}

/** The queue stores the requester without its certificate. undefined: the outcome does not depend on it. */
function whyUnknown({ config }: Ca, { required_device, method, override }: RequestRow): string | undefined {
  if (config.devices !== 'off' && required_device === null && !BY_NAME.includes(method))
    return 'the device is identified only when it presents its certificate again';
  if (config.authorization !== undefined && override === null)
    return 'the external authorization service decides when the requester polls again';
  return undefined;
}

/** Methods whose requesters match devices by name. */
const BY_NAME: readonly string[] = ['otp', 'gssapi', 'ldap', 'jwt'];

const uncounted = (what: string): EstuaryError =>
  unauthorized('AUTHENTICATION_REQUIRED', `this CA does not accept ${what}`);

/** A fictitious password, so that the check proceeds as if one was presented. */
function passwordHolder(requestId: string, clientId: string): OtpIdentity {
  return {
    method: 'otp',
    requester: `otp:dry-run ${requestId}`,
    display: clientId,
    otp_id: '',
    client_id: clientId,
    usable: true,
    lockoutKeys: [],
    password: Buffer.alloc(0),
  };
}

async function certificateHolder(
  mtls: Pick<AuthPlugin, 'authenticate'>,
  { ca, address, now }: Pick<DryRunRequest, 'ca' | 'address'> & { readonly now: number },
  { der, further }: Extract<AssumedSender, { readonly kind: 'certificate' }>,
): Promise<Identity> {
  const presented = { peerCertificate: der, peerIntermediates: further, authorization: undefined, address };
  const rules = credentialRules(ca);
  const context = {
    operation: 'simpleenroll',
    caLabel: ca.label,
    certificateOnly: true,
    expiredGraceSeconds: 0,
    awaitsChain: ca.awaitsChain.bind(ca),
    rules,
    now,
  };
  try {
    const identity = await mtls.authenticate(presented, context);
    if (identity !== undefined) return identity;
  } catch (error) {
    if (!(error instanceof NotAccepted)) throw error;
    throw forbidden('CLIENT_CERTIFICATE_NOT_ACCEPTED', 'client certificate not accepted by this CA');
  }
  throw unauthorized('CLIENT_CERTIFICATE_REQUIRED', 'client certificate required');
}

function certified({ keyed, prepared }: Allowed): Pick<Verdict, 'subject' | 'sans' | 'notAfter'> {
  return {
    subject: formatName(keyed.names.subject),
    sans: keyed.names.subjectAltNames.map(formatGeneralName),
    notAfter: prepared.notAfter?.getTime(),
  };
}
