/** The calls of administrators, as the audit log and the rules of `administration/` see them. */
import type { FastifyRequest } from 'fastify';
import * as administration from '../../administration/admin-call.ts';
import type { AuditEvent, AuditOutcome } from '../../audit/event.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { failed } from '../../errors.ts';

/** @throws EstuaryError 500: nobody was authenticated */
export function callerOf({ admin }: FastifyRequest): AdminIdentity {
  if (admin === null) throw failed('INTERNAL_ERROR', 'the request failed inside the server');
  return admin;
}

export function callOf(request: FastifyRequest): administration.AdminCall {
  return {
    admin: callerOf(request),
    address: request.clientAddress,
    request_id: request.id,
    // The route's pattern, not the path: someone may have pasted a token where its id belongs.
    name: `${request.method} ${request.routeOptions.url ?? ''}`,
  };
}

/** Who makes a call, for the audit events that belong to it. */
export const actor = (request: FastifyRequest) => administration.actor(callOf(request));

/** The `admin.access` event of a call; see {@link administration.accessEvent}. */
export const accessEvent = (request: FastifyRequest, outcome: AuditOutcome, about: string): AuditEvent =>
  administration.accessEvent(callOf(request), outcome, about);

/** Whether a call is meant to change something. */
export const isChanging = ({ method, routeOptions }: FastifyRequest): boolean =>
  !['GET', 'HEAD'].includes(method) && routeOptions.config.changes !== false;
