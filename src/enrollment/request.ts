/** What the stages of a request share (docs/internals/architecture.md, "The enrollment pipeline"). */
import { tokenEvent } from '../audit/applied-events.ts';
import type { AuditedRequester, AuditEvent } from '../audit/event.ts';
import { auditedRequester, type Identity, type PresentedCredentials, tokenMethod, tokenOf } from '../auth/identity.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import { credentialInvalid } from '../auth/guarded-attempts.ts';
import type { Ca } from '../ca/router.ts';
import { EstuaryError, forbidden, unauthorized } from '../errors.ts';
import { dryRunEffect } from '../store/calls/errors.ts';
import type { DeviceRow } from '../store/device-store.ts';
import type { RequestRow } from '../store/request-store.ts';
import type { RescuedRequest } from '../store/rescue-store.ts';
import type { KeyPart } from './key-protection.ts';

export type EstEnrollment = 'simpleenroll' | 'simplereenroll' | 'serverkeygen';

/** A request as received; unverified. */
export interface Received {
  readonly requestId: string;
  readonly operation: EstEnrollment | 'fullcmc';
  readonly ca: Ca;
  readonly address: string;
  /** Links the requested key to the sender (RFC 7030 §3.5). */
  readonly linking: PopLinking;
}

/** A request to an EST operation. */
export interface ReceivedByEst extends Received {
  readonly operation: EstEnrollment;
  readonly presented: PresentedCredentials;
  /** DER of the CSR, or the body's error, which is reported after authentication. */
  readonly body: Buffer | EstuaryError;
  /** Whether the client has disconnected. */
  isGone(): boolean;
}

export type RequestDevice = Pick<DeviceRow, 'key' | 'id' | 'attributes'>;

export function deviceOf({
  device,
  foundDevice,
}: Pick<RequestBase, 'device' | 'foundDevice'>): Pick<RequestRow, 'device' | 'device_key' | 'required_device'> {
  const { id, key } = device ?? foundDevice ?? { id: null, key: null };
  return { device: id, device_key: key, required_device: device?.key ?? null };
}

/** 403: the device is unknown, or was disabled, expired or deleted, according to the store. */
export function deviceNotRegistered(detail: string): EstuaryError {
  return forbidden('DEVICE_NOT_REGISTERED', 'device not registered', { detail });
}

/** The pass that a request needs; undefined: its certificate has not expired. */
export const rescuedRequest = ({ identity }: RequestBase, recognition: string): RescuedRequest | undefined =>
  identity.method === 'mtls' && identity.rescued !== undefined ? { ...identity.rescued, recognition } : undefined;

export const rescueOver = (detail: string): EstuaryError =>
  unauthorized('CLIENT_CERTIFICATE_EXPIRED', 'client certificate expired', { detail });

/**
 * @param when the store refused
 * @throws EstuaryError 401 if the token has no use left, or the pass is over; 403 if the device has no right
 */
export function refuseUnusable<Result>(
  result: Result,
  { identity }: Pick<RequestBase, 'identity'>,
  when: string,
): asserts result is Exclude<Result, 'otp-unusable' | 'device-refused' | 'rescue-over'> {
  if (result === 'otp-unusable') throw tokenInvalid(identity, `used up ${when}`);
  if (result === 'device-refused') throw deviceNotRegistered(when);
  if (result === 'rescue-over') throw rescueOver(`its pass was over ${when}`);
}

/** DER of the CSR. @throws EstuaryError 400 with the body's error */
export function bodyOf({ body }: Pick<ReceivedByEst, 'body'>): Buffer {
  if (body instanceof EstuaryError) throw body;
  return body;
}

/** A request's authenticated sender and purpose, for all later stages. */
export interface RequestBase extends Omit<Received, 'linking'> {
  readonly identity: Identity;
  /** Events of the authentication and later; committed with the next transaction. */
  readonly events: readonly AuditEvent[];
  /** The certificate's owner if another party polls it: a registration authority for a queued request. */
  readonly owner?: string;
  /** The registered device, if the label issues only to registered devices. */
  readonly device?: RequestDevice;
  /** The device whose history shows the request, if the label also issues to others. No rule applies to it. */
  readonly foundDevice?: Pick<DeviceRow, 'key' | 'id'>;
  readonly dryRun?: true;
}

/** Called before any effect. @throws EstuaryError 500 `DRY_RUN` */
export function refuseDryRun({ dryRun }: Pick<RequestBase, 'dryRun'>): void {
  if (dryRun === true) throw dryRunEffect();
}

export type EnrollmentOutcome =
  | {
      readonly status: 'issued';
      readonly certificate: Buffer;
      /** The generated private key; the sender of the response zeroes it. */
      readonly key?: KeyPart | undefined;
    }
  | { readonly status: 'pending'; /** Of the queued request. */ readonly requestId: string };

/** Thrown for all but one of concurrent polls of an approved request. */
export class RequestTaken extends Error {}

type RequestOrigin = Pick<RequestBase, 'identity' | 'address' | 'ca' | 'requestId'>;

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

/** Maximum text of a denial; it contains names from the request. */
const MAX_DENIAL = 1000;

/**
 * A denial of a whole request, or of a part of a CMC message, to an authenticated requester.
 * @param isRenewal whether the requester's certificate requests its own names
 */
export function deniedEvent(
  request: RequestOrigin,
  operation: string,
  code: string,
  reason: string,
  isRenewal: boolean,
): AuditEvent {
  return {
    ...eventBase(request),
    type: 'certificate.denied',
    outcome: 'failure',
    operation,
    ...(isRenewal && { renewal: true }),
    reason: reason.slice(0, MAX_DENIAL).toWellFormed(),
    detail: `${operation}: ${code}: ${reason}`.slice(0, MAX_DENIAL).toWellFormed(),
  };
}

/** Events committed with the intent to issue, or to queue. @param takesUse it takes a use of a password */
export function receivedEvents(request: RequestBase, takesUse: boolean): AuditEvent[] {
  const { events, identity, operation: detail } = request;
  const base = eventBase(request);
  const token = takesUse ? tokenOf(identity) : undefined;
  const used = token === undefined ? [] : [tokenEvent({ type: 'otp.used', token: { id: token.otp_id } }, base)];
  return [...events, { ...base, type: 'request.received', outcome: 'success', detail }, ...used];
}

export const queuedEvent = (request: RequestOrigin, detail: string): AuditEvent => ({
  ...eventBase(request),
  type: 'request.queued',
  outcome: 'success',
  detail,
});

/** 401: the request's token is used up or dead. */
export function tokenInvalid(identity: Identity, detail: string): EstuaryError {
  return credentialInvalid(tokenMethod(identity), detail);
}
