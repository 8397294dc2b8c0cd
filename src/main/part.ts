/** A part of the service that starts or stops. */
export interface Part {
  /** Called once, before any part starts: acquires resources that another program may hold. */
  bind?(): Promise<void>;
  /** Called once, after the earlier parts have started. */
  start?(): void | Promise<void>;
  /** Called at most once, even if its start failed or was not reached. */
  stop?(): void | Promise<void>;
}

/** Work that runs at start and periodically, never concurrently; a long run delays the next. */
export abstract class Recurring implements Part {
  readonly #interval: number;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  /** @param interval milliseconds */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Ends a run in progress early. */
  protected get stopped(): AbortSignal {
    return this.#stopped.signal;
  }

  protected abstract work(isFirst: boolean): Promise<void>;

  start(): Promise<void> {
    this.#timer = setInterval(() => this.#begin(false), this.#interval).unref();
    this.#begin(true);
    return Promise.resolve();
  }

  /** Waits for a run in progress. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    clearInterval(this.#timer);
    await this.#underWay;
  }

  #begin(isFirst: boolean): void {
    this.#underWay ??= this.work(isFirst).finally(() => (this.#underWay = undefined));
  }
}
