/** The request for which the current code runs: its ID for logs and audit records, and facts for its log entry. */
import { AsyncLocalStorage } from 'node:async_hooks';

interface RequestFacts {
  /** The authenticated requester. */
  requester?: string | undefined;
  /** `mtls`, `otp` … */
  method?: string | undefined;
  /** Serial number of the issued certificate. */
  serial?: string | undefined;
  /** Code of the error that ended it. */
  code?: string | undefined;
}

/** The part of a request that all layers know. */
export interface RequestContext extends RequestFacts {
  /** `X-Request-Id` of its response. */
  readonly requestId: string;
  /** Key for fair queues: the requester once authenticated, before that the client's address. */
  readonly party: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Runs `work`, and everything that it starts, for this request. */
export const runForRequest = <T>(context: RequestContext, work: () => T): T => storage.run(context, work);

const currentRequestId = (): string | undefined => storage.getStore()?.requestId;

/** The current request's party; empty for the server's own work. */
export const currentParty = (): string => storage.getStore()?.party ?? '';

/** The ID as a field of an audit event; empty outside a request. */
export function requestIdField(): { readonly request_id?: string } {
  const id = currentRequestId();
  return id === undefined ? {} : { request_id: id };
}

export function noteOnRequest(facts: RequestFacts): void {
  const context = storage.getStore();
  if (context !== undefined) Object.assign(context, facts);
}
