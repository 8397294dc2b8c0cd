/**
 * Fuzzes one target: inputs that reach code which no other has reached join the corpus, and are changed further. A
 * finding is an exception that the target does not declare, an input that takes too long or too much memory, and an
 * error that is left behind for the next TLS connection.
 */
import { Session } from 'node:inspector/promises';
import type { Coverage } from './coverage.ts';
import { mutateTree } from './der-mutation.ts';
import { mutate, random, type Random } from './mutation.ts';
import { MAX_LENGTH, SLOW, type Target } from './target.ts';
import { mutateText } from './text-mutation.ts';
import type { TlsProbe } from './tls-probe.ts';
import type { Watchdog } from './watchdog.ts';

/** Octets that one input may allocate, and that a whole run may retain in addition to its corpus. */
const HUNGRY = 64 << 20;
/** Inputs between two looks at the coverage, which cost more than most inputs. */
const BATCH = 128;
/** Batches between two looks at what is kept. */
const BATCHES = 200;

export interface Finding {
  /** What went wrong. */
  readonly what: string;
  readonly input: Buffer;
}

export interface FuzzOptions {
  readonly target: Target;
  readonly seed: number;
  /** CPU seconds of this process. */
  readonly seconds: number;
  /** Times the CPU time that one input may take: a busy machine's caches and clock make inputs slower than they are. */
  readonly cpuFactor?: number;
  readonly coverage: Coverage;
  readonly watchdog: Watchdog;
  readonly probe: TlsProbe;
  /** In addition to the target's seeds. */
  readonly corpus: readonly Buffer[];
  readonly onFinding: (finding: Finding) => void;
  /** An input that reached something new. */
  readonly onReached: (input: Buffer) => void;
}

export interface FuzzResult {
  readonly cpuSeconds: number;
  readonly executions: number;
  /** Of the inputs, those that were read to the end. */
  readonly accepted: number;
  readonly corpus: number;
  readonly findings: number;
  /** CPU milliseconds. */
  readonly slowest: number;
}

/** CPU microseconds of this process, its thread pool included. */
const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const inspector = new Session();
inspector.connect();

/** Octets in use after everything that nobody holds is gone. */
async function kept(): Promise<number> {
  await inspector.post('HeapProfiler.collectGarbage');
  return inUse();
}

function inUse(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Kinds of exception that are findings whatever a target declares. */
const isExhaustion = (error: unknown): boolean =>
  error instanceof RangeError && /call stack|Invalid (?:string|array|typed array) length|allocat/i.test(error.message);

export class Fuzzer {
  readonly #options: FuzzOptions;
  readonly #next: Random;
  readonly #corpus: Buffer[] = [];
  /** One finding for each message: the same fault is met a thousand times. */
  readonly #known = new Set<string>();
  #executions = 0;
  #accepted = 0;
  #slowest = 0;

  constructor(options: FuzzOptions) {
    this.#options = options;
    this.#next = random(options.seed);
  }

  async run(): Promise<FuzzResult> {
    const { target, seconds, corpus, coverage } = this.#options;
    const start = cpu();
    const end = start + seconds * 1e6;
    coverage.reset();
    const seeds = await target.seeds();
    for (const seed of [...seeds, ...corpus]) {
      await this.#check(seed);
      // Whatever is kept of an earlier run has to be worth it now; the seeds are always there.
      if (coverage.reachedMore() || seeds.includes(seed)) this.#corpus.push(seed);
    }
    let keptBefore = await kept();
    for (let batches = 1; cpu() < end; batches++) {
      await this.#batch();
      if (batches % BATCHES === 0) keptBefore = await this.#checkKept(keptBefore);
    }
    await this.#checkKept(keptBefore);
    return {
      cpuSeconds: (cpu() - start) / 1e6,
      executions: this.#executions,
      accepted: this.#accepted,
      corpus: this.#corpus.length,
      findings: this.#known.size,
      slowest: this.#slowest / 1000,
    };
  }

  /** One input alone, as a replay of a finding wants it. */
  async replay(input: Buffer): Promise<number> {
    await this.#check(input);
    await this.#probe([input]);
    return this.#known.size;
  }

  async #batch(): Promise<void> {
    const batch = Array.from({ length: BATCH }, () => this.#mutant());
    const peak = process.resourceUsage().maxRSS;
    const more = await this.#options.coverage.tentatively(async () => {
      for (const input of batch) await this.#check(input);
    });
    await this.#probe(batch);
    if (process.resourceUsage().maxRSS - peak > HUNGRY / 1024) await this.#findHungry(batch);
    if (more) await this.#keepNew(batch);
  }

  /** Finds those of a batch that reached something new, by halves: a look at the coverage costs more than most inputs. */
  async #keepNew(batch: readonly Buffer[]): Promise<void> {
    const { coverage, onReached } = this.#options;
    const [only, ...others] = batch;
    if (only !== undefined && others.length === 0) {
      await this.#read(only);
      if (!coverage.reachedMore()) return;
      this.#corpus.push(only);
      onReached(only);
      return;
    }
    const half = batch.length >> 1;
    for (const part of [batch.slice(0, half), batch.slice(half)]) {
      const more = await coverage.tentatively(async () => {
        for (const input of part) await this.#read(input);
      });
      if (more) await this.#keepNew(part);
    }
  }

  async #check(input: Buffer): Promise<void> {
    const { target, cpuFactor = 1 } = this.#options;
    const slow = (target.milliseconds ?? SLOW) * cpuFactor * 1000;
    let time = await this.#read(input);
    for (let again = 0; again < 2 && time > slow; again++) time = Math.min(time, await this.#read(input));
    this.#slowest = Math.max(this.#slowest, time);
    if (time > slow) this.#report('too slow', `${Math.round(time / 1000)} ms of CPU`, input);
  }

  /** CPU microseconds of one reading. */
  async #read(input: Buffer): Promise<number> {
    const { target, watchdog } = this.#options;
    this.#executions++;
    watchdog.begin(input);
    const start = cpu();
    try {
      await target.read(input);
      this.#accepted++;
    } catch (error) {
      if (isExhaustion(error) || !target.isRefusal(error)) this.#report(describe(error), stackOf(error), input);
    }
    const time = cpu() - start;
    watchdog.end();
    return time;
  }

  async #probe(batch: readonly Buffer[]): Promise<void> {
    const { probe } = this.#options;
    if ((await probe.fault()) === undefined) return;
    for (const input of batch) {
      await this.#read(input);
      const fault = await probe.fault();
      if (fault !== undefined) this.#report(`leaves an error for the next TLS connection: ${fault}`, '', input);
    }
  }

  async #findHungry(batch: readonly Buffer[]): Promise<void> {
    for (const input of batch) {
      const before = await kept();
      await this.#read(input);
      const octets = inUse() - before;
      if (octets > HUNGRY) this.#report('too hungry', `allocates ${octets >> 20} MiB`, input);
    }
  }

  /** @returns what is kept now */
  async #checkKept(before: number): Promise<number> {
    const now = await kept();
    const last = this.#corpus.at(-1) ?? Buffer.alloc(0);
    if (now - before > HUNGRY)
      this.#report('memory grows', `${(now - before) >> 20} MiB more after up to ${BATCH * BATCHES} inputs`, last);
    return now;
  }

  #report(what: string, detail: string, input: Buffer): void {
    const kind = what.replace(/\d+/g, '0');
    if (this.#known.has(kind)) return;
    this.#known.add(kind);
    this.#options.onFinding({ what: [what, detail].filter(Boolean).join('\n'), input });
  }

  /** An input of the corpus, the newest rather than the oldest. */
  #choose(): Buffer {
    const { length } = this.#corpus;
    const newest = Math.max(1, length >> 2);
    const at = this.#next(2) === 0 ? this.#next(length) : length - 1 - this.#next(newest);
    return this.#corpus[at] ?? Buffer.alloc(0);
  }

  #mutant(): Buffer {
    const { grammar, words = [], maxLength = MAX_LENGTH } = this.#options.target;
    const next = this.#next;
    let input = this.#choose();
    for (let times = 1 + next(4); times > 0; times--) {
      if (next(4) === 0) input = mutate(input, next);
      else if (grammar === 'der') input = mutateTree(input, this.#choose(), next);
      else input = mutateText(input, this.#choose(), words, next);
    }
    return input.subarray(0, maxLength);
  }
}

const describe = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message.slice(0, 300)}` : `thrown: ${String(error)}`;

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? '') : '');
