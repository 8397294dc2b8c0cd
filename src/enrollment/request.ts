/** What the stages of a request share (docs/internals/architecture.md, "A request's way"). */
import { tokenEvent } from '../audit/applied-events.ts';
import type { AuditedRequester, AuditEvent } from '../audit/event.ts';
import { auditedRequester, type Identity, type PresentedCredentials, tokenMethod, tokenOf } from '../auth/identity.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import { credentialInvalid } from '../auth/guarded-attempts.ts';
import type { Ca } from '../ca/router.ts';
import { EstuaryError, failed, forbidden } from '../errors.ts';
import type { DeviceRow } from '../store/device-store.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { KeyPart } from './key-part.ts';

/** The operations of EST that come to a certificate. */
export type EstEnrollment = 'simpleenroll' | 'simplereenroll' | 'serverkeygen';

/** A request as it came in; nothing in it is believed yet. */
export interface Received {
  readonly requestId: string;
  readonly operation: EstEnrollment | 'fullcmc';
  readonly ca: Ca;
  readonly address: string;
  /** What may tie the requested key to the sender (RFC 7030 §3.5). */
  readonly linking: PopLinking;
}

/** The same for one of EST's own operations. */
export interface ReceivedByEst extends Received {
  readonly operation: EstEnrollment;
  readonly presented: PresentedCredentials;
  /** DER of the CSR; or why the body holds none, which is told after the authentication. */
  readonly body: Buffer | EstuaryError;
  /** Whether nobody is there any more to take an answer. */
  isGone(): boolean;
}

/** A registered device, as far as a request has to know it. */
export type RequestDevice = Pick<DeviceRow, 'key' | 'id' | 'attributes'>;

/** The device columns of a request's records. */
export function deviceOf({
  device,
  foundDevice,
}: Pick<RequestBase, 'device' | 'foundDevice'>): Pick<RequestRow, 'device' | 'device_key' | 'required_device'> {
  const { id, key } = device ?? foundDevice ?? { id: null, key: null };
  return { device: id, device_key: key, required_device: device?.key ?? null };
}

/** 403: what the store says of a device that was disabled, has expired or is gone by now. */
export function deviceNotRegistered(detail: string): EstuaryError {
  return forbidden('DEVICE_NOT_REGISTERED', 'device not registered', { detail });
}

/** DER of the CSR. @throws EstuaryError 400 why there is none */
export function bodyOf({ body }: Pick<ReceivedByEst, 'body'>): Buffer {
  if (body instanceof EstuaryError) throw body;
  return body;
}

/** What every stage from the authentication on says of a request's sender and aim. */
export interface RequestBase extends Omit<Received, 'linking'> {
  readonly identity: Identity;
  /** Of the authentication, and what came after it; committed with the next transaction. */
  readonly events: readonly AuditEvent[];
  /** Whose the certificate is, where somebody else asks for it: a registration authority for what was queued. */
  readonly owner?: string;
  /** The registered device that it is for, if the label issues to registered devices only. */
  readonly device?: RequestDevice;
  /** The device in whose history it appears, if the label also issues to other requesters. No rule applies to this device. */
  readonly foundDevice?: Pick<DeviceRow, 'key' | 'id'>;
  /** Nobody has sent it: an administrator asks what would become of it (dry-run.ts). */
  readonly dryRun?: true;
}

/** What has effects asks first. @throws EstuaryError 500 `DRY_RUN` */
export function refuseDryRun({ dryRun }: Pick<RequestBase, 'dryRun'>): void {
  if (dryRun === true) throw failed('DRY_RUN', 'A dry run must not have effects.');
}

export type EnrollmentOutcome =
  | {
      readonly status: 'issued';
      readonly certificate: Buffer;
      /** The private key that we generated; whoever answers with it zeroes it. */
      readonly key?: KeyPart | undefined;
    }
  | { readonly status: 'pending'; /** Of the queued request. */ readonly requestId: string };

/** What polls at once make of an approved request: one issues, for the others this is thrown. */
export class RequestTaken extends Error {}

/** Who asked which CA, from where. */
type RequestOrigin = Pick<RequestBase, 'identity' | 'address' | 'ca' | 'requestId'>;

/** What the audit events of a request have in common. */
export function eventBase(
  request: RequestOrigin,
): AuditedRequester & Pick<AuditEvent, 'subject' | 'address' | 'ca'> & { readonly request_id: string } {
  return {
    ...auditedRequester(request.identity),
    address: request.address,
    ca: request.ca.label,
    request_id: request.requestId,
  };
}

/** The bound on the text of a denial; names in it come from the request. */
const MAX_DENIAL = 1000;

/** What an authenticated requester was denied: the whole request, or a part of a CMC message. */
export function deniedEvent(request: RequestOrigin, detail: string): AuditEvent {
  return {
    ...eventBase(request),
    type: 'certificate.denied',
    outcome: 'failure',
    detail: detail.slice(0, MAX_DENIAL).toWellFormed(),
  };
}

/**
 * What is committed with the intent to issue, or to queue.
 *
 * @param takesUse it costs a use of a password, where one authenticated it
 */
export function receivedEvents(request: RequestBase, takesUse: boolean): AuditEvent[] {
  const { events, identity, operation: detail } = request;
  const base = eventBase(request);
  const token = takesUse ? tokenOf(identity) : undefined;
  const used = token === undefined ? [] : [tokenEvent({ type: 'otp.used', token: { id: token.otp_id } }, base)];
  return [...events, { ...base, type: 'request.received', outcome: 'success', detail }, ...used];
}

/** The lockout keys that the acceptance of a request clears: those of whom it costs a use of a password. */
export function clearedBy({ identity }: Pick<RequestBase, 'identity'>): readonly string[] {
  return tokenOf(identity)?.lockoutKeys ?? [];
}

/** 401: the token of the request has no use left, or is dead. */
export function tokenInvalid(identity: Identity, detail: string): EstuaryError {
  return credentialInvalid(tokenMethod(identity), detail);
}
