/**
 * Audits rejections with a limit per address: a client that is rejected a thousand times per second causes few durable
 * records, the last of which has a count. One-time passwords have their lockout instead.
 */
import type { AuditEvent } from '../audit/event.ts';
import { CountedRepeats, type Counted } from '../counted-repeats.ts';
import { describe } from '../errors.ts';
import { cutText } from '../log.ts';
import type { AuditStore } from '../store/audit-store.ts';
import { lockoutAddress } from './identity.ts';

/** Records per window of one address and type, and of identical rejections. */
const SINGLE = 20;
const ALIKE = 5;
/** Characters in the audit log. */
const MAX_SUBJECT = 256;
const MAX_DETAIL = 1024;

interface FailureRecordsOptions {
  readonly store: Pick<AuditStore, 'audit'>;
  readonly log: { readonly error: (fields: object, message: string) => void };
  readonly now: () => number;
  /** Receives rejections without a record, for the metrics. */
  readonly observe?: (events: readonly AuditEvent[]) => void;
}

export class FailureRecords {
  readonly #options: FailureRecordsOptions;
  readonly #repeats: CountedRepeats<AuditEvent>;

  constructor(options: FailureRecordsOptions) {
    this.#options = options;
    const { now } = options;
    this.#repeats = new CountedRepeats({ single: SINGLE, alike: ALIKE, tell: (counted) => this.#tell(counted), now });
  }

  /**
   * Commits the rejection, or counts it for the record at the end of its window. Truncates its texts.
   * @throws EstuaryError 500 or 503 from the store
   */
  async record(event: AuditEvent): Promise<void> {
    const cut = { ...event, ...cutTexts(event) };
    const kind = `${event.type} ${lockoutAddress(event.address ?? '')}`;
    const counted = this.#repeats.add(kind, cut, JSON.stringify([cut.ca, cut.subject, cut.detail]));
    if (counted === 0) await this.#options.store.audit([cut]);
    // The record with the count is observed on commit, and represents the first rejection.
    if (counted > 1) this.#options.observe?.([cut]);
  }

  /** Commits the pending counts. Never throws. */
  close(): Promise<void> {
    return this.#repeats.close();
  }

  async #tell({ count, last, since }: Counted<AuditEvent>): Promise<void> {
    const detail = `${count} more failures from this address since ${new Date(since).toISOString()}; the last: ${last.detail ?? ''}`;
    try {
      await this.#options.store.audit([{ ...last, detail: cutText(detail, MAX_DETAIL) }]);
    } catch (error) {
      this.#options.log.error(
        { detail: describe(error), counted: count },
        'cannot write the count of authentication failures to the audit log',
      );
    }
  }
}

function cutTexts({ subject, reason, detail }: AuditEvent): Pick<AuditEvent, 'subject' | 'reason' | 'detail'> {
  return {
    ...(subject === undefined ? {} : { subject: cutText(subject, MAX_SUBJECT) }),
    ...(reason === undefined ? {} : { reason: cutText(reason, MAX_DETAIL) }),
    ...(detail === undefined ? {} : { detail: cutText(detail, MAX_DETAIL) }),
  };
}
