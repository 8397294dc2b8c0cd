/** Approves and rejects queued requests: the rules for every way in (docs/guides/approval.md). */
import { requestEnded } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import type { CaRouter } from '../ca/router.ts';
import { conflict, forbidden, notFound, unavailable } from '../errors.ts';
import type { Decider, Decision, RequestRow, RequestStore } from '../store/request-store.ts';
import { accessEvent, actor, type AdminCall } from './admin-call.ts';

export interface DecisionContext {
  readonly store: Pick<RequestStore, 'getRequest' | 'decideRequest'>;
  readonly cas: Pick<CaRouter, 'all'>;
  readonly now: () => number;
}

/** Attempts if other administrators decide concurrently. */
const ATTEMPTS = 20;

/**
 * Approves a request, or counts one of several approvals.
 * @throws EstuaryError 403 `APPROVER_NOT_LISTED`; 404; 409 if it was decided, this administrator approved it before,
 * its device may not have a certificate, or the CA decides; 500; 503
 */
export const approve = (context: DecisionContext, call: AdminCall, id: string): Promise<RequestRow> =>
  decide(context, call, id, (row) => approvalBy(call, row, approvalsNeeded(context, row)));

/**
 * Rejects a request; one rejection is enough. @throws EstuaryError 404; 409 if it was decided, or the CA decides; 500;
 * 503
 */
export const reject = (context: DecisionContext, call: AdminCall, id: string, reason: string): Promise<RequestRow> =>
  decide(context, call, id, ({ decided_by: before }) => ({
    status: 'rejected',
    reason,
    deciders: { before, after: [...before, deciderOf(call)] },
  }));

/** The required number of approvals: the larger of the numbers at queuing and now. */
export function approvalsNeeded({ cas }: Pick<DecisionContext, 'cas'>, { ca, approvals }: RequestRow): number {
  const configured = cas.all.find(({ label }) => label === ca)?.config.approvals;
  return Math.max(approvals, configured ?? 1);
}

/** @throws EstuaryError 404 */
export async function findRequest(
  { store }: { readonly store: Pick<RequestStore, 'getRequest'> },
  id: string,
): Promise<RequestRow> {
  const row = await store.getRequest(id);
  if (row === undefined) throw requestNotFound();
  return row;
}

type Wanted = Pick<Decision, 'status' | 'reason'> & Required<Pick<Decision, 'deciders'>>;

async function decide(
  context: DecisionContext,
  call: AdminCall,
  id: string,
  decisionOn: (row: RequestRow) => Wanted,
): Promise<RequestRow> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const row = await findRequest(context, id);
    if (row.decider === 'ca')
      throw conflict('DECIDED_AT_CA', 'this request is pending at the CA; its agents decide it');
    if (row.status !== 'pending') throw decided();
    const decision: Wanted & Decision = { id, decided_at: context.now(), ...decisionOn(row) };
    const events = eventsOf(call, row, decision, approvalsNeeded(context, row));
    const result = await context.store.decideRequest(decision, events);
    if (result === 'overtaken') continue;
    if (result === 'unknown') throw requestNotFound();
    if (result === 'device-refused')
      throw conflict('DEVICE_NOT_REGISTERED', 'device not registered: it is disabled, has expired or was deleted');
    if (result === 'not-pending') throw decided();
    return findRequest(context, id);
  }
  throw unavailable('REQUEST_BUSY', 'other administrators are changing this request; try again', {
    retryAfter: 1,
  });
}

const deciderOf = ({ admin: { key, display } }: AdminCall): Decider => ({ key, name: display });

function approvalBy(call: AdminCall, { decided_by: before }: RequestRow, needed: number): Wanted {
  const { admin } = call;
  if (needed > 1 && !admin.hasEntry)
    throw forbidden(
      'APPROVER_NOT_LISTED',
      `this request needs ${needed} administrators: a certificate without an entry in admin.clients cannot approve it`,
      { detail: `no entry of admin.clients names the certificate of ${admin.display}` },
    );
  const isKnown = before.some(({ key }) => key === admin.key);
  if (isKnown && before.length < needed)
    throw conflict('APPROVED_ALREADY', 'you have already approved this request: another administrator must approve it');
  const after = isKnown ? before : [...before, deciderOf(call)];
  return { status: after.length < needed ? 'pending' : 'approved', reason: null, deciders: { before, after } };
}

function eventsOf(
  call: AdminCall,
  row: RequestRow,
  { id, status, reason, deciders: { after } }: Wanted & Pick<Decision, 'id'>,
  needed: number,
): AuditEvent[] {
  const what = status === 'rejected' ? 'rejected' : 'approved';
  const count = status === 'rejected' || needed === 1 ? '' : `, ${after.length} of ${needed}`;
  const detail = [
    `${row.operation} of ${row.requester}`,
    ...(reason === null ? [] : [reason]),
    ...(count === '' ? [] : [`approved by ${after.map(({ name }) => name).join(', ')}${count}`]),
  ];
  const by = { ...actor(call), ca: row.ca, request_id: id };
  return [
    accessEvent(call, 'success', `request ${id} ${what}${count}`),
    what === 'rejected'
      ? requestEnded('request.rejected', by, reason ?? '', detail.join(': '))
      : { ...by, type: 'request.approved', outcome: 'success', detail: detail.join(': ') },
  ];
}

const requestNotFound = () => notFound('REQUEST_NOT_FOUND', 'no request has this id');
const decided = () => conflict('REQUEST_DECIDED', 'this request is no longer pending');
