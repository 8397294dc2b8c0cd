/**
 * A mixed load: devices that enroll and renew, wrong passwords, garbage, slow clients, and administrators who revoke,
 * approve and reload. Each activity declares its expected responses; any other is recorded as a problem.
 */
import type { Estuary } from '../estuary.ts';
import { ACTIVITIES } from './activities.ts';
import { Book } from './book.ts';
import { pause } from '../until.ts';

/** One round of something; it is run again and again. */
export interface Activity {
  readonly name: string;
  /** How many do it at a time. */
  readonly clients: number;
  /** Milliseconds between two rounds of one client. */
  readonly pause: number;
  /** A client, with what it keeps between its rounds. */
  readonly begin: (
    load: MixedLoad,
    client: number,
  ) => { readonly round: () => Promise<void>; readonly end?: () => void };
}

export interface LoadOptions {
  /** The test makes the service fail: requests without a response, or with 500 or 503, are repeated as a device would. */
  readonly faults?: boolean;
  /** Instead of the usual ones. */
  readonly activities?: readonly Activity[];
}

/** Longest time that somebody goes on asking, in milliseconds. */
const MAX_WAIT = 300_000;
/** Between two attempts, in milliseconds. */
const AGAIN = 250;
/** Closed by the server between two requests of a kept connection: every client tries again. */
const CLOSED = /^(ECONNRESET|EPIPE)$/;

export class MixedLoad {
  readonly estuary: Estuary;
  readonly book = new Book();
  /** The test makes the service fail. */
  readonly faults: boolean;
  /** Statuses that are currently expected, in addition to the usual ones. */
  readonly alsoRight = new Set<number>();
  /** Names for which a certificate was renewed: they have several. */
  readonly renewed = new Set<string>();
  readonly #activities: readonly Activity[];
  #running = false;
  #abandoned = false;
  #loops: readonly Promise<void>[] = [];
  #names = 0;

  constructor(estuary: Estuary, { faults = false, activities = ACTIVITIES }: LoadOptions = {}) {
    this.estuary = estuary;
    this.faults = faults;
    this.#activities = activities;
  }

  get running(): boolean {
    return this.#running;
  }

  start(): void {
    this.#running = true;
    this.#loops = this.#activities.flatMap((activity) =>
      Array.from({ length: activity.clients }, (_, client) => this.#loop(activity, client)),
    );
  }

  /** Lets every round that has begun come to its end. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops);
  }

  /** Ends at once: what is not answered is not asked again. */
  async abandon(): Promise<void> {
    this.#abandoned = true;
    await this.stop();
  }

  /** A name that nobody has had. */
  name(activity: string): string {
    this.#names += 1;
    return `${activity}-${this.#names}`;
  }

  /**
   * Asks until the answer is one of those wanted.
   *
   * @param repeated what is right, too, for one that was sent before
   * @returns undefined where it never came, which is in the book
   */
  async ask<T extends { readonly status: number }>(
    activity: string,
    wanted: readonly number[],
    send: () => Promise<T>,
    repeated: (answer: T) => boolean = () => false,
  ): Promise<T | undefined> {
    const deadline = performance.now() + MAX_WAIT;
    for (let attempt = 0; ; attempt++) {
      const begun = performance.now();
      // What was right when it was sent is right, however late the answer comes.
      const right = new Set([...wanted, ...this.alsoRight]);
      const answer = await send().catch((error: unknown) =>
        error instanceof Error ? error : new Error(String(error)),
      );
      const outcome = answer instanceof Error ? codeOf(answer) : String(answer.status);
      this.book.note(activity, outcome, performance.now() - begun);
      if (!(answer instanceof Error) && (right.has(answer.status) || this.alsoRight.has(answer.status))) return answer;
      if (!(answer instanceof Error) && attempt > 0 && repeated(answer)) return answer;
      if (this.#abandoned) return undefined;
      const again = this.faults
        ? answer instanceof Error || answer.status === 500 || answer.status === 503
        : answer instanceof Error && CLOSED.test(outcome) && attempt < 3;
      if (!again || performance.now() > deadline) {
        this.book.problem(`${activity}: ${outcome} ${textOf(answer)}, after ${attempt + 1} attempts`);
        return undefined;
      }
      await pause(AGAIN);
    }
  }

  async #loop({ name, pause: idle, begin }: Activity, client: number): Promise<void> {
    const { round, end } = begin(this, client);
    while (this.#running) {
      await round().catch((error: unknown) => this.book.problem(`${name}: ${String(error)}`));
      await pause(idle);
    }
    end?.();
  }
}

function codeOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return code ?? error.message;
}

function textOf(answer: object): string {
  return 'text' in answer && typeof answer.text === 'string' ? JSON.stringify(answer.text.slice(0, 200)) : '';
}
