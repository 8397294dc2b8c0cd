/**
 * A vitest reporter: after the run it lists every test that was left out, with the reason that `requires` recorded.
 * With `CI=true` a test that was left out makes the run fail, whoever left it out.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { ABOUT_FILES } from './wanted-store.ts';

interface Skip {
  readonly file: string;
  readonly reason: string;
}

function isSkip(value: unknown): value is Skip {
  if (typeof value !== 'object' || value === null || !('file' in value) || !('reason' in value)) return false;
  return typeof value.file === 'string' && typeof value.reason === 'string';
}

export default class SkipReport implements Reporter {
  #folder = '';
  #list = '';
  /** Set when somebody asked for certain tests by name: the others are not "left out". */
  #filtered = false;

  onInit(vitest: Vitest): void {
    this.#folder = mkdtempSync(join(tmpdir(), 'estuary-skips-'));
    this.#list = join(this.#folder, 'list');
    writeFileSync(this.#list, '');
    // The test processes inherit it.
    process.env['ESTUARY_SKIP_LIST'] = this.#list;
    this.#filtered = vitest.config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const skips = this.#filtered ? [] : modules.flatMap((module) => describeSkips(module, this.#recorded()));
    rmSync(this.#folder, { recursive: true, force: true });
    if (skips.length === 0) return;
    console.log(` Left out on this machine:\n${skips.map(({ line }) => `   ${line}\n`).join('')}`);
    if (process.env['CI'] !== 'true' || skips.every(({ isWanted }) => isWanted)) return;
    console.log(' CI=true: tests that are left out fail the run.\n');
    process.exitCode = 1;
  }

  #recorded(): Skip[] {
    const lines = readFileSync(this.#list, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    return lines.map((line): unknown => JSON.parse(line)).filter(isSkip);
  }
}

interface Described {
  readonly line: string;
  /** The run was told to leave these out. */
  readonly isWanted: boolean;
}

function describeSkips(module: TestModule, recorded: readonly Skip[]): Described[] {
  const skipped = [...module.children.allTests('skipped')];
  if (skipped.length === 0) return [];
  const ofFile = recorded.filter((skip) => skip.file === module.moduleId).map((skip) => skip.reason);
  const notes = skipped.map((test) => test.result()).map((result) => ('note' in result ? result.note : undefined));
  const reasons = [...new Set([...ofFile, ...notes.filter((note) => note !== undefined)])];
  const number = skipped.length === 1 ? '1 test' : `${skipped.length} tests`;
  const file = relative(process.cwd(), module.moduleId);
  return [
    {
      line: `${file} (${number}): ${reasons.length === 0 ? 'no reason given' : reasons.join('; ')}`,
      isWanted: reasons.length > 0 && reasons.every((reason) => reason === ABOUT_FILES),
    },
  ];
}
