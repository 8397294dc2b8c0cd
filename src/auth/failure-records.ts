/**
 * Refusals in the audit log, bounded for each address: a client that is refused a thousand times a second costs a few
 * durable records, the last of which counts the others. One-time passwords have their lockout instead.
 */
import type { AuditEvent } from '../audit/event.ts';
import { CountedRepeats, type Counted } from '../counted-repeats.ts';
import { describe } from '../errors.ts';
import { cutText } from '../log.ts';
import type { AuditStore } from '../store/audit-store.ts';
import { lockoutAddress } from './identity.ts';

/** Records of one address and type within a window, and of one and the same refusal. */
const SINGLE = 20;
const ALIKE = 5;
/** Characters in the audit log. */
const MAX_SUBJECT = 256;
const MAX_DETAIL = 1024;

interface FailureRecordsOptions {
  readonly store: Pick<AuditStore, 'audit'>;
  readonly log: { readonly error: (fields: object, message: string) => void };
  readonly now: () => number;
  /** Told of the refusals that get no record of their own, for the metrics. */
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
   * Commits the refusal, or counts it for the record that its window ends with. Subject and detail are cut.
   *
   * @throws EstuaryError 500 or 503 from the store
   */
  async record(event: AuditEvent): Promise<void> {
    const cut = { ...event, ...cutTexts(event) };
    const kind = `${event.type} ${lockoutAddress(event.address ?? '')}`;
    const counted = this.#repeats.add(kind, cut, JSON.stringify([cut.ca, cut.subject, cut.detail]));
    if (counted === 0) await this.#options.store.audit([cut]);
    // The record that counts them is observed when it is committed, and stands for the first.
    if (counted > 1) this.#options.observe?.([cut]);
  }

  /** Commits what has been counted so far. Never throws. */
  close(): Promise<void> {
    return this.#repeats.close();
  }

  async #tell({ count, last, since }: Counted<AuditEvent>): Promise<void> {
    const detail = `${count} more refusals of this address since ${new Date(since).toISOString()}; the last: ${last.detail ?? ''}`;
    try {
      await this.#options.store.audit([{ ...last, detail: cutText(detail, MAX_DETAIL) }]);
    } catch (error) {
      this.#options.log.error({ detail: describe(error), counted: count }, 'counted refusals could not be audited');
    }
  }
}

function cutTexts({ subject, detail }: AuditEvent): Pick<AuditEvent, 'subject' | 'detail'> {
  return {
    ...(subject === undefined ? {} : { subject: cutText(subject, MAX_SUBJECT) }),
    ...(detail === undefined ? {} : { detail: cutText(detail, MAX_DETAIL) }),
  };
}
