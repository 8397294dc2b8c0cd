/** The audit trail of administrators: who did what from where (contract §7, admin access). */
import type { FastifyRequest } from 'fastify';
import type { AuditEvent, AuditOutcome } from '../../audit/event.ts';

/** Who a changing call is by; for the audit events that belong to it. */
export function actor(request: FastifyRequest): { subject: string; address: string; request_id: string } {
  return { subject: request.admin?.display ?? 'nobody', address: request.clientAddress, request_id: request.id };
}

/**
 * The `admin.access` event of a call. It goes into the transaction of the change that the call makes.
 *
 * @param outcome `failure` for a call that was refused
 * @param about what the call was about or how it failed; never a secret
 */
export function accessEvent(request: FastifyRequest, outcome: AuditOutcome, about: string): AuditEvent {
  // The route's pattern and not the path: someone may have pasted a token where its id belongs.
  const call = `${request.method} ${request.routeOptions.url ?? ''}`;
  return { type: 'admin.access', outcome, ...actor(request), detail: `${call}: ${about}` };
}

/** Whether a call is meant to change something. */
export const isChanging = ({ method, routeOptions }: FastifyRequest): boolean =>
  !['GET', 'HEAD'].includes(method) && routeOptions.config.changes !== false;
