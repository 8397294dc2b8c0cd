/** Authenticates EST requests: tries the methods by precedence and audits the outcome. */
import type { AuditEvent } from '../audit/event.ts';
import { describe, EstuaryError, forbidden, unauthorized, isUnauthenticated } from '../errors.ts';
import { auditedRequester, type Identity, type PresentedCredentials } from './identity.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { FailureRecords } from './failure-records.ts';
import { certificateHolder } from './certificate-holder.ts';
import { NotAccepted, type AuthContext, type AuthPlugin } from './plugin.ts';
import { presentedCertificates } from './mtls/presented-certificates.ts';
import { noteOnRequest, requestIdField } from '../request-context.ts';

interface EstAuthenticatorOptions {
  /** The enabled methods, in any order. */
  readonly plugins: readonly AuthPlugin[];
  readonly store: AuditStore;
  readonly failures: FailureRecords;
}

export interface EstAuthenticator {
  /**
   * The first identity in the order client certificate, GSSAPI, JWT, LDAP, OTP. A failed method does not prevent the
   * next from succeeding.
   * @throws EstuaryError 401. Its message is empty without credentials if a password would suffice (a mere challenge),
   * `client certificate required` if only a certificate would, otherwise that of the failed method, preferring the
   * Authorization header to the certificate. 403 `CLIENT_CERTIFICATE_NOT_ACCEPTED` if the only credential is a valid
   * certificate that is not accepted here. 500 or 503 if a check failed.
   */
  authenticate(presented: PresentedCredentials, context: AuthContext): Promise<Identity>;
}

const PRECEDENCE: readonly Identity['method'][] = ['mtls', 'gssapi', 'jwt', 'ldap', 'otp'];

export function createEstAuthenticator({ plugins, store, failures }: EstAuthenticatorOptions): EstAuthenticator {
  const ordered = PRECEDENCE.flatMap((method) => plugins.filter((plugin) => plugin.method === method));
  const certificates = ordered.filter(({ method }) => method === 'mtls');
  return {
    async authenticate(presented, context) {
      const methods = (context.certificateOnly ? certificates : ordered).filter(
        ({ method }) => context.rules?.methods?.includes(method) !== false,
      );
      let failure: EstuaryError | undefined;
      let notAccepted: EstuaryError | undefined;
      for (const plugin of methods) {
        try {
          const identity = await plugin.authenticate(presented, context);
          if (identity === undefined) continue;
          const hints = identity.method === 'mtls' ? methods.map((other) => other.hint?.(presented)) : [];
          noteOnRequest({ requester: identity.display, method: identity.method });
          await reportSuccess(store, identity, presented, { ...context, hints });
          return identity;
        } catch (error) {
          if (error instanceof NotAccepted) {
            notAccepted = forbidden('CLIENT_CERTIFICATE_NOT_ACCEPTED', 'client certificate not accepted by this CA');
            await failures.record(notAcceptedEvent(error.identity, notAccepted, presented, context));
            continue;
          }
          if (!isUnauthenticated(error)) throw error;
          noteOnRequest({ method: plugin.method });
          if (plugin.auditsFailures !== true)
            await failures.record(failureEvent(plugin.method, error, presented, context));
          failure = error;
        }
      }
      if (failure !== undefined) throw failure;
      if (notAccepted !== undefined) throw notAccepted;
      if (methods.every(({ method }) => method === 'mtls'))
        throw unauthorized('CLIENT_CERTIFICATE_REQUIRED', 'client certificate required');
      throw unauthorized('AUTHENTICATION_REQUIRED', '');
    },
  };
}

async function reportSuccess(
  store: AuditStore,
  identity: Identity,
  { address }: PresentedCredentials,
  { caLabel, operation, events, hints }: AuthContext & { readonly hints: readonly (string | undefined)[] },
): Promise<void> {
  const event: AuditEvent = {
    ...authenticationEvent(identity, 'success', address, caLabel),
    detail: [operation, identity.note, ...hints].filter((part) => part !== undefined).join('; '),
  };
  if (events === undefined) await store.audit([event]);
  else events.push(event);
}

/** Names the rejected issuer. */
function notAcceptedEvent(
  identity: Identity,
  { message }: EstuaryError,
  { address }: PresentedCredentials,
  { caLabel, operation }: AuthContext,
): AuditEvent {
  const detail = `${operation}; ${message}`;
  return { ...authenticationEvent(identity, 'failure', address, caLabel), operation, reason: message, detail };
}

function authenticationEvent(
  identity: Identity,
  outcome: AuditEvent['outcome'],
  address: string,
  ca: string,
): AuditEvent {
  return {
    type: `auth.${identity.method}`,
    outcome,
    ...auditedRequester(identity),
    address,
    ca,
    ...requestIdField(),
    ...(identity.method === 'mtls' ? { serial: identity.certificate.serialNumber } : {}),
  };
}

function failureEvent(
  method: Identity['method'],
  error: EstuaryError,
  presented: PresentedCredentials,
  { caLabel, operation }: AuthContext,
): AuditEvent {
  return {
    type: `auth.${method}`,
    outcome: 'failure',
    ...(method === 'mtls' ? refusedCertificate(presented) : {}),
    address: presented.address,
    ca: caLabel,
    ...requestIdField(),
    operation,
    reason: describe(error),
    detail: [operation, error.message, error.detail].filter((part) => part !== undefined).join('; '),
  };
}

/** The names in a rejected certificate; empty if it is malformed. */
function refusedCertificate(presented: PresentedCredentials): Pick<AuditEvent, 'subject' | 'serial'> {
  try {
    const leaf = presentedCertificates(presented)?.leaf();
    return leaf === undefined ? {} : { subject: certificateHolder(leaf), serial: leaf.serialNumber };
  } catch {
    return {};
  }
}
