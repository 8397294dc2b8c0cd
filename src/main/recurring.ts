/** Something that is done at the start and every so often, one at a time: what takes longer than its interval goes on. */
import type { Part } from './part.ts';

export class Recurring implements Part {
  readonly #interval: number;
  readonly #work: (isFirst: boolean) => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  /**
   * @param interval milliseconds
   * @param work never rejects
   */
  constructor(interval: number, work: (isFirst: boolean) => Promise<void>) {
    this.#interval = interval;
    this.#work = work;
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
    this.#underWay ??= this.#work(isFirst).finally(() => (this.#underWay = undefined));
  }
}
