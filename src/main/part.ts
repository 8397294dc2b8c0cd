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
export class Recurring implements Part {
  readonly #interval: number;
  readonly #work: (isFirst: boolean) => Promise<void>;
  readonly #isOnDuty: () => boolean;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  /**
   * @param interval milliseconds
   * @param work never rejects
   * @param isOnDuty whether it is for this process to do when the time has come: of several nodes, one does
   */
  constructor(interval: number, work: (isFirst: boolean) => Promise<void>, isOnDuty: () => boolean = () => true) {
    this.#interval = interval;
    this.#work = work;
    this.#isOnDuty = isOnDuty;
  }

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
    if (!this.#isOnDuty()) return;
    this.#underWay ??= this.#work(isFirst).finally(() => (this.#underWay = undefined));
  }
}
