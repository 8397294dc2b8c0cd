/** An administrator's call: who makes it, and what the audit log says about it. */
import type { AuditedRequester, AuditEvent, AuditOutcome } from '../audit/event.ts';
import type { AdminIdentity } from '../auth/administrators.ts';

export interface AdminCall {
  readonly admin: AdminIdentity;
  readonly address: string;
  readonly request_id: string;
  /** Name in the audit log, such as `POST /admin/requests/:id/approve`. Contains no secret. */
  readonly name: string;
}

type Actor = AuditedRequester & { readonly subject: string; readonly address: string; readonly request_id: string };

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
 * The `admin.access` event, committed with the call's change.
 * @param outcome `failure` for a rejected call
 * @param about the object of the call, or the failure; never a secret
 */
export function accessEvent(call: AdminCall, outcome: AuditOutcome, about: string): AuditEvent {
  return { type: 'admin.access', outcome, ...actor(call), operation: call.name, detail: `${call.name}: ${about}` };
}
