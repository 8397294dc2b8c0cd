/** V8's block coverage of this process, as far as it is about our code and the parsers that it uses. */
import { Session, type Profiler } from 'node:inspector';

type Interval = readonly [start: number, end: number];

/** Our sources, and the parsers of others behind them. */
const WATCHED = /\/src\/|\/node_modules\/(?:smol-toml|typebox)\//;

const total = (intervals: readonly Interval[]): number => intervals.reduce((sum, [start, end]) => sum + end - start, 0);

/** Start it before the code that it is to watch is imported: V8 counts blocks only of what it compiles afterwards. */
export class Coverage {
  readonly #session = new Session();
  /** What of each function that ran at all has never run. */
  #missed = new Map<string, readonly Interval[]>();
  /** Characters of the functions that ran. */
  #size = 0;

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Forgets what was reached, for another target. */
  reset(): void {
    this.reachedMore();
    this.#missed = new Map();
    this.#size = 0;
  }

  /** Whether something ran since the last call that had never run before. */
  reachedMore(): boolean {
    let more = false;
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error;
      for (const { url, functions } of result)
        if (WATCHED.test(url)) for (const ran of functions) more = this.#merge(url, ran) || more;
    });
    return more;
  }

  /** Runs `work` and takes back what it reached, so that each part of it can be tried alone. */
  async tentatively(work: () => Promise<void>): Promise<boolean> {
    const missed = new Map(this.#missed);
    const size = this.#size;
    await work();
    if (!this.reachedMore()) return false;
    this.#missed = missed;
    this.#size = size;
    return true;
  }

  #merge(url: string, { ranges }: Profiler.FunctionCoverage): boolean {
    const [whole] = ranges;
    // A whole module counts as a function that begins at 0, and is run by its import.
    if (whole === undefined || whole.count === 0 || whole.startOffset === 0) return false;
    const key = `${url}:${whole.startOffset}`;
    const before = this.#missed.get(key);
    if (before?.length === 0) return false;
    const now = ranges
      .filter(({ count }) => count === 0)
      .map(({ startOffset, endOffset }): Interval => [startOffset, endOffset]);
    const known = before ?? [[whole.startOffset, whole.endOffset]];
    const still = known.flatMap(([start, end]) =>
      now.map(([from, to]): Interval => [Math.max(start, from), Math.min(end, to)]).filter(([from, to]) => from < to),
    );
    if (before === undefined) this.#size += whole.endOffset - whole.startOffset;
    this.#missed.set(key, still);
    return total(still) < total(known);
  }

  /** E.g. `94 % of 312 functions`: the characters that ran, of the functions that were entered. */
  toString(): string {
    const missed = total([...this.#missed.values()].flat());
    const share = this.#size === 0 ? 0 : Math.round((1 - missed / this.#size) * 1000) / 10;
    return `${share} % of ${this.#missed.size} functions`;
  }
}
