/** Which request the code runs for, wherever it runs: its id for log lines and audit records, and what its own line of log tells. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** What becomes known of a request on its way through the layers. */
interface RequestFacts {
  /** Who it is from, once somebody was authenticated. */
  requester?: string | undefined;
  /** How: `mtls`, `otp` … */
  method?: string | undefined;
  /** Of the certificate that was issued. */
  serial?: string | undefined;
  /** Why it was refused: an error's code. */
  code?: string | undefined;
}

/** A request as all layers know it. */
export interface RequestContext extends RequestFacts {
  /** `X-Request-Id` of its answer. */
  readonly requestId: string;
  /** Whose turn it takes in shared queues: the requester's once authenticated, until then the client address's. */
  readonly party: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Runs `work`, and whatever it begins, for this request. */
export const runForRequest = <T>(context: RequestContext, work: () => T): T => storage.run(context, work);

/** undefined: nobody asked for what runs. */
const currentRequestId = (): string | undefined => storage.getStore()?.requestId;

/** The party of the request that runs; empty: the server runs for itself. */
export const currentParty = (): string => storage.getStore()?.party ?? '';

/** The id as a field of an audit event; none where nobody asked. */
export function requestIdField(): { readonly request_id?: string } {
  const id = currentRequestId();
  return id === undefined ? {} : { request_id: id };
}

/** Adds to the line of log of the request under way. */
export function noteOnRequest(facts: RequestFacts): void {
  const context = storage.getStore();
  if (context !== undefined) Object.assign(context, facts);
}
