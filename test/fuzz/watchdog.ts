/** Ends a fuzzer that hangs in one input: a thread that looks on, since the hanging one cannot. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

/** Milliseconds between two looks, and of one input at which it counts as hanging. */
const LOOK = 5000;
const PATIENCE = 90_000;
const MAX_INPUT = 1 << 17;
/** Of the shared memory: how many inputs were begun, the octets of this one (0: none is being read), then the input. */
const HEADER = 8;

interface Shared {
  readonly memory: SharedArrayBuffer;
  readonly file: string;
}

export class Watchdog {
  readonly #numbers: Int32Array;
  readonly #input: Uint8Array;
  readonly #worker: Worker;

  /** @param file where the input goes that hangs, before this process is killed */
  constructor(file: string) {
    const memory = new SharedArrayBuffer(HEADER + MAX_INPUT);
    this.#numbers = new Int32Array(memory, 0, 2);
    this.#input = new Uint8Array(memory, HEADER);
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { memory, file } satisfies Shared });
    this.#worker.unref();
  }

  begin(input: Buffer): void {
    this.#input.set(input.subarray(0, MAX_INPUT));
    Atomics.store(this.#numbers, 1, Math.max(1, input.length));
    Atomics.add(this.#numbers, 0, 1);
  }

  end(): void {
    Atomics.store(this.#numbers, 1, 0);
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

function look({ memory, file }: Shared): void {
  const numbers = new Int32Array(memory, 0, 2);
  let begun = -1;
  let since = Date.now();
  setInterval(() => {
    const now = Atomics.load(numbers, 0);
    const length = Atomics.load(numbers, 1);
    if (now !== begun || length === 0) {
      begun = now;
      since = Date.now();
    } else if (Date.now() - since > PATIENCE) {
      const input = Buffer.from(new Uint8Array(memory, HEADER, Math.min(length, MAX_INPUT)));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, input);
      process.stderr.write(`an input hangs: ${file}\n${input.toString('base64')}\n`);
      process.kill(process.pid, 'SIGKILL');
    }
  }, LOOK);
}

function isShared(data: unknown): data is Shared {
  return typeof data === 'object' && data !== null && 'memory' in data && 'file' in data;
}

if (!isMainThread && isShared(workerData)) look(workerData);
