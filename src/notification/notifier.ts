/**
 * Delivers events at least once. The outbox is the audit log, whose records are committed with the changes that they are about. For each
 * receiver, the store has the last record of each chain that is done. One node at a time delivers.
 */
import { isAuditRecord } from '../audit/record.ts';
import type { NotificationConfig } from '../config/schema.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { NotificationStore } from '../store/notification-store.ts';
import type { RetentionStore } from '../store/retention-store.ts';
import { type CloudEvent, eventOf, sampleEvent } from './event.ts';
import type { Receiver } from './receivers.ts';

export interface NotifierOptions {
  readonly config: NotificationConfig;
  readonly receiver: Receiver;
  readonly store: NotificationStore & Pick<RetentionStore, 'auditLines'>;
  readonly node: string;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  readonly isOnDuty: () => boolean;
  readonly observe: (name: string, outcome: 'delivered' | 'failed' | 'given_up', count: number) => void;
  readonly now: () => number;
}

/** Records per read, after which the place is stored. */
const BATCH = 100;
/** Milliseconds between looks for new records. */
const LOOK = 1000;
/** Milliseconds between attempts: at first, and at most. */
const [FIRST_DELAY, LONGEST_DELAY] = [1000, 300_000];
/** Events of one mail. */
const MAX_DIGEST = 10_000;

/** The events after a place in a chain, and the place behind them. */
interface Batch {
  readonly events: readonly { readonly seq: number; readonly time: number; readonly event: CloudEvent }[];
  readonly last: number;
  readonly isEnd: boolean;
}

/** How the delivery to a receiver is. */
export interface NotifierState {
  readonly config: NotificationConfig;
  /** Whether this node delivers; the other fields are its own. */
  readonly delivers: boolean;
  /** Failed attempts in succession, and why the last one failed. */
  readonly failures: number;
  readonly problem: string | undefined;
  readonly delivered_at: number | undefined;
  /** Audit records after the last one that is done. */
  readonly behind: number;
}

/** One receiver. Receivers do not wait for each other. */
export class Notifier {
  readonly #options: NotifierOptions;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #stopped = false;
  #failures = 0;
  #problem: string | undefined;
  #deliveredAt: number | undefined;
  #lastDigest: number | undefined;

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.config.name;
  }

  /** Why the last delivery failed. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** What happened before the receiver was configured is not sent. */
  async start(): Promise<void> {
    const { store } = this.#options;
    if ((await store.notificationPlaces(this.name)).size === 0)
      await store.beginNotification(this.name, await store.auditChains());
    this.#again(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#underWay;
    this.#options.receiver.close();
  }

  /** @throws what the store throws */
  async state(): Promise<NotifierState> {
    const { config, isOnDuty, store } = this.#options;
    const [places, chains] = await Promise.all([store.notificationPlaces(this.name), store.auditChains()]);
    const behind = [...chains].reduce((sum, [node, seq]) => sum + seq - (places.get(node) ?? 0), 0);
    const [failures, problem, delivered_at] = [this.#failures, this.#problem, this.#deliveredAt];
    return { config, delivers: isOnDuty(), failures, problem, delivered_at, behind };
  }

  /** @throws Error if the receiver does not accept the sample */
  test(): Promise<void> {
    return this.#options.receiver.send([sampleEvent(this.#options.now(), this.#options.node)]);
  }

  #again(delay: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#underWay = this.deliver().then((next) => this.#again(next));
    }, delay);
    this.#timer.unref();
  }

  /** Delivers what there is. Never rejects. @returns milliseconds until the next attempt */
  async deliver(): Promise<number> {
    const { config, isOnDuty, observe, log } = this.#options;
    if (!isOnDuty()) return LOOK;
    try {
      await (config.kind === 'smtp' ? this.#mail(config.digest_interval * 1000) : this.#each());
      this.#failures = 0;
      this.#problem = undefined;
      return LOOK;
    } catch (error) {
      observe(this.name, 'failed', 1);
      this.#problem = describe(error);
      // The first, and then the more seldom the longer it lasts.
      if (Number.isInteger(Math.log2(++this.#failures)))
        log.warn({ notification: this.name, detail: this.#problem }, 'a notification could not be delivered');
      return Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(this.#failures - 1, 20)) * (0.5 + Math.random() / 2);
    }
  }

  async #each(): Promise<void> {
    const { receiver, store } = this.#options;
    for (const [node, place] of await this.#places())
      for (let after = place, isEnd = false; !isEnd && !this.#stopped;) {
        const batch = await this.#read(node, after);
        let done = batch.last;
        try {
          for (const { seq, time, event } of batch.events) {
            done = seq - 1;
            if (this.#isTooOld(time)) await this.#giveUp(node, seq, event);
            else {
              await receiver.send([event]);
              this.#delivered(1);
            }
            done = batch.last;
          }
        } finally {
          if (done > after) await store.advanceNotification(this.name, node, done, []);
        }
        ({ isEnd, last: after } = batch);
      }
  }

  async #mail(interval: number): Promise<void> {
    const { receiver, store, now } = this.#options;
    this.#lastDigest ??= now() - interval;
    if (now() - this.#lastDigest < interval) return;
    const events: CloudEvent[] = [];
    const places = new Map<string, number>();
    for (const [node, place] of await this.#places())
      for (let after = place, isEnd = false; !isEnd && events.length < MAX_DIGEST;) {
        const batch = await this.#read(node, after);
        for (const { seq, time, event } of batch.events)
          if (this.#isTooOld(time)) await this.#giveUp(node, seq, event);
          else events.push(event);
        places.set(node, batch.last);
        ({ isEnd, last: after } = batch);
      }
    if (events.length > 0) {
      await receiver.send(events);
      this.#delivered(events.length);
      this.#lastDigest = now();
    }
    for (const [node, seq] of places) await store.advanceNotification(this.name, node, seq, []);
  }

  #delivered(count: number): void {
    const { observe, now } = this.#options;
    observe(this.name, 'delivered', count);
    this.#deliveredAt = now();
    // A receiver that fails now and then gets the rest at once.
    this.#failures = 0;
  }

  /** Also of nodes that are new since. */
  async #places(): Promise<readonly (readonly [node: string, place: number])[]> {
    const { store } = this.#options;
    const known = await store.notificationPlaces(this.name);
    return [...(await store.auditChains()).keys()].map((node) => [node, known.get(node) ?? 0]);
  }

  async #read(node: string, after: number): Promise<Batch> {
    const { store, config } = this.#options;
    const lines = await store.auditLines(after, BATCH, node);
    const events = lines.flatMap(({ seq, time, line }) => {
      const record: unknown = JSON.parse(line);
      const event = isAuditRecord(record) ? eventOf(record, config) : undefined;
      return event === undefined ? [] : [{ seq, time, event }];
    });
    return { events, last: lines.at(-1)?.seq ?? after, isEnd: lines.length < BATCH };
  }

  #isTooOld(time: number): boolean {
    const { config, now } = this.#options;
    return now() - time > config.retry_for * 1000;
  }

  async #giveUp(node: string, seq: number, { id, type }: CloudEvent): Promise<void> {
    const { store, observe, log } = this.#options;
    const detail = `${this.name}: ${type} ${id} was not delivered in time`;
    await store.advanceNotification(this.name, node, seq, [
      { type: 'notification.failed', outcome: 'failure', detail },
    ]);
    observe(this.name, 'given_up', 1);
    log.error({ notification: this.name, event: id }, 'a notification was given up');
  }
}
