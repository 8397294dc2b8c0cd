/** What a mixed load has asked and was answered. */

export interface Answered {
  readonly name: string;
  /** Whether a token that yields one certificate only was used for it. */
  readonly once: boolean;
}

export class Book {
  /** Outcomes by activity: how often each came. */
  readonly outcomes = new Map<string, Map<string, number>>();
  /** What must not happen. */
  readonly problems: string[] = [];
  /** Certificates that devices hold, by serial number. */
  readonly certificates = new Map<string, Answered>();
  /** Serial numbers whose revocation was answered. */
  readonly revoked = new Set<string>();
  #times: number[] = [];

  /** One answer, or one failure to get one. @param ms how long it took */
  note(activity: string, outcome: string, ms: number): void {
    const counts = this.outcomes.get(activity) ?? new Map<string, number>();
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    this.outcomes.set(activity, counts);
    this.#times.push(ms);
  }

  problem(text: string): void {
    // What goes wrong a thousand times is not told a thousand times.
    if (this.problems.length < 50) this.problems.push(text);
  }

  answered(serial: string, answered: Answered): void {
    if (this.certificates.has(serial)) this.problem(`the serial number ${serial} was answered twice`);
    this.certificates.set(serial, answered);
  }

  /** Milliseconds of all answers since it was last asked. */
  takeTimes(): number[] {
    const times = this.#times;
    this.#times = [];
    return times;
  }

  /** Answers so far, of all activities. */
  get total(): number {
    return [...this.outcomes.values()].flatMap((counts) => [...counts.values()]).reduce((sum, count) => sum + count, 0);
  }
}
