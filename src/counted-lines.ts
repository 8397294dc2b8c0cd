/** Lines of log that anybody can cause without end: some of one kind have a line of their own, the others share one that counts them. */

export interface CountedLog {
  readonly info: (fields: object, message: string) => void;
}

/** Milliseconds after the first line of a kind after which the count of the others is told. */
const WINDOW = 10_000;
/** Lines of one kind within that time. */
const SINGLE = 5;
/** Kinds counted at a time; beyond, the oldest one's count is told early. */
const MAX_KINDS = 1000;

interface Window {
  readonly since: number;
  readonly timer: NodeJS.Timeout;
  single: number;
  counted: number;
  last: { readonly fields: object; readonly message: string } | undefined;
}

export class CountedLines {
  readonly #log: CountedLog;
  /** The oldest first. */
  readonly #windows = new Map<string, Window>();

  constructor(log: CountedLog) {
    this.#log = log;
  }

  /** @param kind what lines have in common that may share one: the message and the client's address, for example */
  info(kind: string, fields: object, message: string): void {
    const window = this.#window(kind);
    if (window.single < SINGLE) {
      window.single++;
      this.#log.info(fields, message);
      return;
    }
    window.counted++;
    window.last = { fields, message };
  }

  /** Tells what has been counted so far. */
  close(): void {
    for (const kind of this.#windows.keys()) this.#end(kind);
  }

  #window(kind: string): Window {
    const open = this.#windows.get(kind);
    if (open !== undefined) return open;
    const [oldest] = this.#windows.keys();
    if (this.#windows.size >= MAX_KINDS && oldest !== undefined) this.#end(oldest);
    const timer = setTimeout(() => this.#end(kind), WINDOW);
    timer.unref();
    const window: Window = { since: Date.now(), timer, single: 0, counted: 0, last: undefined };
    this.#windows.set(kind, window);
    return window;
  }

  #end(kind: string): void {
    const window = this.#windows.get(kind);
    if (window === undefined) return;
    this.#windows.delete(kind);
    clearTimeout(window.timer);
    const { counted, last, since } = window;
    if (last === undefined) return;
    // The fields are those of the last one.
    const more = { ...last.fields, repeated: counted, since: new Date(since).toISOString() };
    this.#log.info(more, last.message);
  }
}
