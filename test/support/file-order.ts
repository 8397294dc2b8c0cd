/**
 * The order of a run's test files: those that start servers come first, the larger ones before the smaller, and the many
 * files of milliseconds last. So the workers end at about the same time. And the files of one part of a run
 * (`scripts/test --shard 1/4`): the parts take about the same time.
 */
import { statSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const GIB = 2 ** 30;

/**
 * How many files run at the same time: two for each core, because a file that runs servers waits for half of its time, if each of
 * them has the memory that it may need with its servers.
 */
export function workersFor(cores: number, memory: number): number {
  return Math.max(1, Math.min(cores * 2, Math.floor((memory - 2 * GIB) / (1.5 * GIB))));
}

/** By project. The files of a project without isolation stay together, because they share processes. */
const RANKS: Readonly<Record<string, number>> = { postgres: 0, slow: 1, served: 2, alone: 3, shared: 4 };

const rankOf = ({ project }: TestSpecification): number => RANKS[project.name] ?? 0;
const ALONE = 3;

/** Seconds of CPU for a KiB of a test file, by project. */
const COSTS: Readonly<Record<string, number>> = {
  slow: 1,
  postgres: 1,
  served: 0.6,
  dogtag: 2,
  alone: 0.2,
  shared: 0.05,
};

/** Of lint and the other checks of the tree, which are in the first part. */
const CHECKS = 100;

/** About how many seconds of CPU a file takes. */
export function costOf({ project, moduleId }: Pick<TestSpecification, 'moduleId'> & Named): number {
  return ((COSTS[project.name] ?? 1) * statSync(moduleId).size) / 1024;
}

interface Named {
  readonly project: { readonly name: string };
}

/** Shares out files. All that need Dogtag are in the last part, because its start takes minutes. */
export function partsOf<File extends Pick<TestSpecification, 'moduleId'> & Named>(
  files: readonly File[],
  count: number,
): readonly (readonly File[])[] {
  const parts = Array.from({ length: count }, () => ({ cost: 0, files: new Array<File>() }));
  const lightest = (): (typeof parts)[number] | undefined =>
    parts.reduce((best, part) => (part.cost < best.cost ? part : best));
  const [first] = parts;
  if (first !== undefined) first.cost = CHECKS;
  const costs = files.map((file) => ({ file, cost: costOf(file) }));
  costs.sort((a, b) => b.cost - a.cost || (a.file.moduleId < b.file.moduleId ? -1 : 1));
  const isDogtag = ({ file }: (typeof costs)[number]): boolean => file.project.name === 'dogtag';
  for (const each of [...costs.filter(isDogtag), ...costs.filter((other) => !isDogtag(other))]) {
    const part = isDogtag(each) ? parts.at(-1) : lightest();
    part?.files.push(each.file);
    if (part !== undefined) part.cost += each.cost;
  }
  return parts.map((part) => part.files);
}

export default class FileOrder extends BaseSequencer {
  override shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard ?? { index: 1, count: 1 };
    return Promise.resolve([...(partsOf(files, count)[index - 1] ?? [])]);
  }

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b));
    const isDogtag = ({ project }: TestSpecification): boolean => project.name === 'dogtag';
    const order = sorted.filter((file) => !isDogtag(file));
    const servers = order.filter((file) => rankOf(file) < ALONE).length;
    const dogtag = sorted.filter(isDogtag);
    // There is one Dogtag, which starts during the run: its files are apart, in the second half.
    for (const [n, file] of dogtag.entries())
      order.splice(Math.round((servers * (dogtag.length + n)) / (dogtag.length * 2)) + n, 0, file);
    return order;
  }
}
