/**
 * Refusals in the audit log, bounded for each address: a client that is refused a thousand times a second costs a few
 * durable records, the last of which counts the others (contract §11). One-time passwords have their lockout instead.
 */
import type { AuditEvent } from '../audit/event.ts';
import { describe } from '../errors.ts';
import { cutText } from '../log.ts';
import type { AuditStore } from '../store/audit-store.ts';
import { lockoutAddress } from './client-address.ts';

/** Milliseconds after the first refusal of an address after which the count of the others is recorded. */
const WINDOW = 10_000;
/** Records of one address and type within that time, and of one and the same refusal. */
const SINGLE = 20;
const ALIKE = 5;
/** Addresses counted at a time; beyond, the window of the oldest ends early. */
const MAX_ADDRESSES = 1000;
/** Characters in the audit log. */
const MAX_SUBJECT = 256;
const MAX_DETAIL = 1024;

export interface FailureRecordsOptions {
  readonly store: Pick<AuditStore, 'audit'>;
  readonly log: { readonly error: (fields: object, message: string) => void };
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Told of the refusals that get no record of their own, for the metrics. */
  readonly observe?: (events: readonly AuditEvent[]) => void;
}

interface Window {
  readonly since: number;
  readonly timer: NodeJS.Timeout;
  single: number;
  /** By what a refusal says. */
  readonly alike: Map<string, number>;
  /** Refusals without a record of their own, and the latest of them. */
  counted: number;
  last: AuditEvent | undefined;
}

export class FailureRecords {
  readonly #options: FailureRecordsOptions;
  /** By type and address, the oldest first. */
  readonly #windows = new Map<string, Window>();

  constructor(options: FailureRecordsOptions) {
    this.#options = options;
  }

  /**
   * Commits the refusal, or counts it for the record that the window ends with. Subject and detail are cut.
   *
   * @throws EstuaryError 500 or 503 from the store
   */
  async record(event: AuditEvent): Promise<void> {
    const cut = { ...event, ...cutTexts(event) };
    const window = this.#window(`${event.type} ${lockoutAddress(event.address ?? '')}`);
    const same = JSON.stringify([cut.ca, cut.subject, cut.detail]);
    const alike = window.alike.get(same) ?? 0;
    if (window.single < SINGLE && alike < ALIKE) {
      window.single++;
      window.alike.set(same, alike + 1);
      await this.#options.store.audit([cut]);
      return;
    }
    // The record that counts them is observed when it is committed, and stands for the first.
    if (window.counted > 0) this.#options.observe?.([cut]);
    window.counted++;
    window.last = cut;
  }

  /** Commits what has been counted so far. Never throws. */
  async close(): Promise<void> {
    await Promise.all([...this.#windows.keys()].map((key) => this.#end(key)));
  }

  #window(key: string): Window {
    const open = this.#windows.get(key);
    if (open !== undefined) return open;
    const [oldest] = this.#windows.keys();
    if (this.#windows.size >= MAX_ADDRESSES && oldest !== undefined) void this.#end(oldest);
    const timer = setTimeout(() => void this.#end(key), WINDOW);
    timer.unref();
    const window = { since: this.#options.now(), timer, single: 0, alike: new Map(), counted: 0, last: undefined };
    this.#windows.set(key, window);
    return window;
  }

  async #end(key: string): Promise<void> {
    const window = this.#windows.get(key);
    if (window === undefined) return;
    this.#windows.delete(key);
    clearTimeout(window.timer);
    const { counted, last, since } = window;
    if (last === undefined) return;
    const detail = `${counted} more refusals of this address since ${new Date(since).toISOString()}; the last: ${last.detail ?? ''}`;
    try {
      await this.#options.store.audit([{ ...last, detail: cutText(detail, MAX_DETAIL) }]);
    } catch (error) {
      this.#options.log.error({ detail: describe(error), counted }, 'counted refusals could not be audited');
    }
  }
}

function cutTexts({ subject, detail }: AuditEvent): Pick<AuditEvent, 'subject' | 'detail'> {
  return {
    ...(subject === undefined ? {} : { subject: cutText(subject, MAX_SUBJECT) }),
    ...(detail === undefined ? {} : { detail: cutText(detail, MAX_DETAIL) }),
  };
}
