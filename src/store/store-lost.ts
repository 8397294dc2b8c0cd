import { EstuaryError } from '../errors.ts';

/**
 * 503: the store went away over the call, or is away. Whether a call that was under way happened is not known; whoever calls has to find
 * out, or to take it back.
 */
export class StoreLost extends EstuaryError {
  /** @param detail for the log */
  constructor(detail: string) {
    super(503, 'STORE_UNAVAILABLE', 'the store cannot be used at present', { detail, retryAfter: 1 });
  }
}
