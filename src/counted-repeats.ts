/** What anybody can cause without end: some of one kind are told of by themselves, the others together, with their number. */

/** Lines of log that anybody can cause without end: some of one kind have a line of their own, the others share one that counts them. */
interface CountedLog {
  readonly info: (fields: object, message: string) => void;
}

/** Lines of one kind within a window. */
const SINGLE = 5;

interface Line {
  readonly fields: object;
  readonly message: string;
}

export class CountedLines {
  readonly #log: CountedLog;
  readonly #repeats = new CountedRepeats<Line>({ single: SINGLE, tell: (counted) => this.#tell(counted) });

  constructor(log: CountedLog) {
    this.#log = log;
  }

  /** @param kind what lines have in common that may share one: the message and the client's address, for example */
  info(kind: string, fields: object, message: string): void {
    if (this.#repeats.add(kind, { fields, message }) === 0) this.#log.info(fields, message);
  }

  /** Tells what has been counted so far. */
  close(): void {
    void this.#repeats.close();
  }

  /** The fields are those of the last one. */
  #tell({ count, last: { fields, message }, since }: Counted<Line>): void {
    this.#log.info({ ...fields, repeated: count, since: new Date(since).toISOString() }, message);
  }
}

/** Milliseconds after the first of a kind after which the others are told of. */
const WINDOW = 10_000;
/** Kinds counted at a time; beyond, the oldest one's count is told early. */
const MAX_KINDS = 1000;

/** Those of one kind that were not told of by themselves. */
export interface Counted<T> {
  readonly count: number;
  readonly last: T;
  /** Milliseconds since the epoch: the first of the kind, told of by itself. */
  readonly since: number;
}

interface CountedRepeatsOptions<T> {
  /** How many of a kind stand for themselves in a window; and of those, how many that are alike. */
  readonly single: number;
  readonly alike?: number;
  /** Called at the end of a window in which some were counted. Never throws, or rejects. */
  readonly tell: (counted: Counted<T>) => void | Promise<void>;
  readonly now?: () => number;
}

interface Window<T> {
  readonly since: number;
  readonly timer: NodeJS.Timeout;
  single: number;
  /** By what an item says. */
  readonly alike: Map<string, number>;
  counted: number;
  last: T | undefined;
}

export class CountedRepeats<T extends object> {
  readonly #options: CountedRepeatsOptions<T>;
  /** By kind, the oldest first. */
  readonly #windows = new Map<string, Window<T>>();

  constructor(options: CountedRepeatsOptions<T>) {
    this.#options = options;
  }

  /**
   * @param kind what those have in common that are counted together
   * @param same what it says, for those that are alike
   * @returns 0 where it stands for itself; else how many of its window are counted by now
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

  /** Tells what has been counted so far; at once, where telling does not wait. */
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
