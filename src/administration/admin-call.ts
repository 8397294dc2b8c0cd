/** A call of an administrator: who makes it, and what the audit log says about it. */
import type { AuditedRequester, AuditEvent, AuditOutcome } from '../audit/event.ts';
import type { AdminIdentity } from '../auth/administrators.ts';

export interface AdminCall {
  readonly admin: AdminIdentity;
  /** The client's network address. */
  readonly address: string;
  /** Identifies the call. */
  readonly request_id: string;
  /** What the audit log calls it, such as `POST /admin/requests/:id/approve`. Contains no secret. */
  readonly name: string;
}

type Actor = AuditedRequester & { readonly subject: string; readonly address: string; readonly request_id: string };

/** Who makes the call, for the audit events that belong to it. */
export function actor({ admin: { display, method, issuer }, address, request_id }: AdminCall): Actor {
  return {
    subject: display,
    method,
    ...(issuer === undefined ? {} : { requester_issuer: issuer }),
    address,
    request_id,
  };
}

/**
 * The `admin.access` event of a call. It goes into the transaction of the change that the call makes.
 *
 * @param outcome `failure` for a call that is rejected
 * @param about what the call was about or how it failed; never a secret
 */
export function accessEvent(call: AdminCall, outcome: AuditOutcome, about: string): AuditEvent {
  return { type: 'admin.access', outcome, ...actor(call), operation: call.name, detail: `${call.name}: ${about}` };
}
