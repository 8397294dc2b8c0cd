/** Administrators' calls in the form of the audit log and of `administration/`. */
import type { FastifyRequest } from 'fastify';
import * as administration from '../../administration/admin-call.ts';
import type { AuditEvent, AuditOutcome } from '../../audit/event.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { failed } from '../../errors.ts';

/** @throws EstuaryError 500 without authentication */
export function callerOf({ admin }: FastifyRequest): AdminIdentity {
  if (admin === null) throw failed('INTERNAL_ERROR', 'the request failed inside the server');
  return admin;
}

export function callOf(request: FastifyRequest): administration.AdminCall {
  return {
    admin: callerOf(request),
    address: request.clientAddress,
    request_id: request.id,
    // The route's pattern instead of the path, which may contain a token pasted in place of an ID.
    name: `${request.method} ${request.routeOptions.url ?? ''}`,
  };
}

export const actor = (request: FastifyRequest) => administration.actor(callOf(request));

/** The `admin.access` event of a call; see {@link administration.accessEvent}. */
export const accessEvent = (request: FastifyRequest, outcome: AuditOutcome, about: string): AuditEvent =>
  administration.accessEvent(callOf(request), outcome, about);

/** Whether a call is intended to change something; a dry run is not. */
export const isChanging = ({ method, routeOptions, query }: FastifyRequest): boolean =>
  !['GET', 'HEAD'].includes(method) && routeOptions.config.changes !== false && !isDryRun(query);

const isDryRun = (query: unknown): boolean =>
  typeof query === 'object' && query !== null && 'dry_run' in query && query.dry_run === 'true';
