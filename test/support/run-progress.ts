/** A vitest reporter that shows every half minute how far a run is, how long it may still take, and which files run. */
import type { Reporter, TestModule, TestSpecification } from 'vitest/node';
import { costOf } from './file-order.ts';

const INTERVAL = 30_000;

export interface Progress {
  /** Milliseconds since the start. */
  readonly time: number;
  readonly files: { readonly done: number; readonly all: number };
  /** The part of the work that is done, from 0 to 1. */
  readonly part: number;
  readonly failed: number;
  readonly running: readonly string[];
}

export function progressLine({ time, files, part, failed, running }: Progress): string {
  const minutes = Math.ceil((time * (1 / part - 1)) / 60_000);
  const estimate = part < 0.02 ? '' : `, about ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} left`;
  const failures = failed === 0 ? '' : `, ${failed} failed`;
  const seconds = String(Math.floor(time / 1000) % 60).padStart(2, '0');
  return `# tests … ${Math.floor(time / 60_000)}:${seconds}, ${files.done} of ${files.all} files${failures}${estimate}; now ${running.join(', ')}`;
}

export default class RunProgress implements Reporter {
  #costs = new Map<string, number>();
  #all = 0;
  readonly #running = new Map<string, string>();
  #failed = 0;
  #timer: NodeJS.Timeout | undefined;

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#costs = new Map(specifications.map((file) => [keyOf(file), costOf(file)]));
    this.#all = this.#sum();
    const start = performance.now();
    this.#timer = setInterval(() => {
      const done = specifications.length - this.#costs.size;
      const files = { done, all: specifications.length };
      const part = this.#all === 0 ? 1 : 1 - this.#sum() / this.#all;
      const time = performance.now() - start;
      const running = [...this.#running.values()];
      console.log(progressLine({ time, files, part, failed: this.#failed, running }));
    }, INTERVAL).unref();
  }

  onTestModuleStart(module: TestModule): void {
    this.#running.set(keyOf(module), module.relativeModuleId);
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(keyOf(module));
    this.#costs.delete(keyOf(module));
    if (!module.ok()) this.#failed += 1;
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer);
  }

  #sum(): number {
    return [...this.#costs.values()].reduce((sum, cost) => sum + cost, 0);
  }
}

function keyOf({
  project,
  moduleId,
}: Pick<TestModule, 'moduleId'> & { readonly project: { readonly name: string } }): string {
  return `${project.name} ${moduleId}`;
}
