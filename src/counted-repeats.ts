/** Limits repeated log entries: the first few of a kind are reported individually, the rest as a count per window. */
import type { RequestLines } from './log.ts';

/** Individual entries per kind and window. */
const SINGLE = 5;

interface Line {
  readonly fields: object;
  readonly message: string;
}

/** Limits log entries that anyone can cause. */
export class CountedLines {
  readonly #log: Pick<RequestLines, 'info'>;
  readonly #repeats = new CountedRepeats<Line>({ single: SINGLE, tell: (counted) => this.#tell(counted) });

  constructor(log: Pick<RequestLines, 'info'>) {
    this.#log = log;
  }

  /** @param kind what entries that may share a count have in common, such as the message and the client's address */
  info(kind: string, fields: object, message: string): void {
    if (this.#repeats.add(kind, { fields, message }) === 0) this.#log.info(fields, message);
  }

  /** Reports the pending counts. */
  close(): void {
    void this.#repeats.close();
  }

  #tell({ count, last: { fields, message }, since }: Counted<Line>): void {
    this.#log.info({ ...fields, repeated: count, since: new Date(since).toISOString() }, message);
  }
}

/** Milliseconds from the first entry of a kind to the report of its count. */
const WINDOW = 10_000;
/** Kinds counted concurrently; beyond that, the oldest one's count is reported early. */
const MAX_KINDS = 1000;

/** The entries of one kind that were not reported individually. */
export interface Counted<T> {
  readonly count: number;
  readonly last: T;
  /** When the first entry of the kind was reported. */
  readonly since: number;
}

interface CountedRepeatsOptions<T> {
  /** Individual items per window; and among these, maximum items that are alike. */
  readonly single: number;
  readonly alike?: number;
  /** Called at the end of a window with a count. Must not throw or reject. */
  readonly tell: (counted: Counted<T>) => void | Promise<void>;
  readonly now?: () => number;
}

interface Window<T> {
  readonly since: number;
  readonly timer: NodeJS.Timeout;
  single: number;
  /** By content. */
  readonly alike: Map<string, number>;
  counted: number;
  last: T | undefined;
}

export class CountedRepeats<T extends object> {
  readonly #options: CountedRepeatsOptions<T>;
  /** By kind, oldest first. */
  readonly #windows = new Map<string, Window<T>>();

  constructor(options: CountedRepeatsOptions<T>) {
    this.#options = options;
  }

  /**
   * @param kind items that share a count
   * @param same content, to detect items that are alike
   * @returns 0 if the item is reported individually; otherwise the count of its window so far
   */
  add(kind: string, item: T, same = ''): number {
    const { single, alike: limit = single } = this.#options;
    const window = this.#window(kind);
    const alike = window.alike.get(same) ?? 0;
    if (window.single < single && alike < limit) {
      window.single++;
      window.alike.set(same, alike + 1);
      return 0;
    }
    window.last = item;
    return ++window.counted;
  }

  /** Reports the pending counts; synchronously if `tell` is. */
  async close(): Promise<void> {
    await Promise.all([...this.#windows.keys()].map((kind) => this.#end(kind)));
  }

  #window(kind: string): Window<T> {
    const open = this.#windows.get(kind);
    if (open !== undefined) return open;
    const [oldest] = this.#windows.keys();
    if (this.#windows.size >= MAX_KINDS && oldest !== undefined) void this.#end(oldest);
    const timer = setTimeout(() => void this.#end(kind), WINDOW);
    timer.unref();
    const { now = Date.now } = this.#options;
    const window: Window<T> = { since: now(), timer, single: 0, alike: new Map(), counted: 0, last: undefined };
    this.#windows.set(kind, window);
    return window;
  }

  async #end(kind: string): Promise<void> {
    const window = this.#windows.get(kind);
    if (window === undefined) return;
    this.#windows.delete(kind);
    clearTimeout(window.timer);
    const { counted: count, last, since } = window;
    if (last !== undefined) await this.#options.tell({ count, last, since });
  }
}
