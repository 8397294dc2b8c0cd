/** A part of the service that has something to start or to stop. */
export interface Part {
  /** Called once, before any part starts: takes what another program may have taken. */
  bind?(): Promise<void>;
  /** Called once, after the parts before it have started. */
  start?(): void | Promise<void>;
  /** Called at most once, also where its start failed, or was not reached. */
  stop?(): void | Promise<void>;
}

/** Something that is done at the start and every so often, one at a time: what takes longer than its interval goes on. */
export abstract class Recurring implements Part {
  readonly #interval: number;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  /** @param interval milliseconds */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Never rejects. */
  protected abstract work(isFirst: boolean): Promise<void>;

  start(): Promise<void> {
    this.#timer = setInterval(() => this.#begin(false), this.#interval).unref();
    this.#begin(true);
    return Promise.resolve();
  }

  /** Waits for what is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#underWay;
  }

  #begin(isFirst: boolean): void {
    this.#underWay ??= this.work(isFirst).finally(() => (this.#underWay = undefined));
  }
}
