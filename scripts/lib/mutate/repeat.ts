/**
 * Runs each test of a file once for each mutant that it reaches, in one process (vitest's `runner` with a plan).
 *
 * A test that does not pass twice without a mutant, or no longer passes after one, proves nothing here: it gets a
 * separate process per mutant.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { TestRunner, type RunnerTestCase } from 'vitest';
import type { Plan } from './runner.ts';

const plan = JSON.parse(readFileSync(process.env['ESTUARY_MUTANTS_PLAN'] ?? '', 'utf8')) as Plan;
const killed = new Set<string>();
let isSpoiled = false;

type Round = Parameters<TestRunner['onBeforeTryTask']>[1];

const note = (...words: readonly string[]): void => {
  appendFileSync(plan.results, `${words.join('\t')}\n`);
};

export default class extends TestRunner {
  #left: string[] = [];
  /** Of this round; undefined: without a mutant. */
  #mutant: string | undefined;
  #isIdle = false;
  #failed = false;
  #toVerify: string | undefined;

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    await super.onBeforeRunTask(test);
    const wanted = isSpoiled ? [] : (plan.mutants[test.fullTestName] ?? []).filter((id) => !killed.has(id));
    this.#left = wanted;
    // Twice without a mutant; each mutant; once more after each that was noticed.
    if (wanted.length > 0) test.repeats = 2 * wanted.length + 1;
  }

  override onBeforeTryTask(test: RunnerTestCase, round: Round): void {
    super.onBeforeTryTask(test, round);
    [this.#mutant, this.#failed, this.#isIdle] = [undefined, false, false];
    if (round.repeats < 2 || this.#toVerify !== undefined) return;
    this.#mutant = isSpoiled || Date.now() > plan.until ? undefined : this.#left.shift();
    this.#isIdle = this.#mutant === undefined;
    if (this.#mutant !== undefined) note('begun', this.#mutant, test.fullTestName);
    globalThis.__mutantOn = this.#mutant;
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    if (this.#isIdle) return;
    try {
      await TestRunner.getTestFn(test)();
      super.onAfterTryTask(test);
    } catch (error) {
      if (test.repeats === undefined) throw error;
      this.#failed = true;
    }
  }

  /** It is done by `runTask`. */
  override onAfterTryTask(): void {}

  override async onAfterRetryTask(test: RunnerTestCase, round: Round): Promise<void> {
    await super.onAfterRetryTask(test, round);
    const { repeats } = round;
    globalThis.__mutantOn = undefined;
    if (test.repeats === undefined || this.#isIdle) return;
    const hasFailed = this.#failed || test.result?.state === 'fail';
    // The result of the test itself is that of its first round.
    if (test.result !== undefined && (repeats > 0 || this.#failed)) {
      test.result.state = repeats === 0 ? 'fail' : 'pass';
      if (repeats > 0) delete test.result.errors;
    }
    if (this.#mutant !== undefined) {
      if (hasFailed) this.#toVerify = this.#mutant;
      else note('passed', this.#mutant, test.fullTestName);
      return;
    }
    if (hasFailed) {
      // Whatever came before has changed what the tests of this file need.
      isSpoiled ||= repeats !== 1;
      this.#left = [];
    } else if (this.#toVerify !== undefined) {
      killed.add(this.#toVerify);
      note('killed', this.#toVerify, test.fullTestName);
    }
    this.#toVerify = undefined;
  }
}
