/**
 * The order of a run's test files: those that start servers come first, the larger ones before the smaller, and the many
 * files of milliseconds last. So the workers end at about the same time.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By project. The files of a project without isolation stay together, because they share processes. */
const RANKS: Readonly<Record<string, number>> = { slow: 0, postgres: 0, alone: 1, shared: 2 };

const rankOf = ({ project }: TestSpecification): number => RANKS[project.name] ?? 0;

export default class FileOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b));
    const isDogtag = ({ project }: TestSpecification): boolean => project.name === 'dogtag';
    const order = sorted.filter((file) => !isDogtag(file));
    const servers = order.filter((file) => rankOf(file) === 0).length;
    const dogtag = sorted.filter(isDogtag);
    // There is one Dogtag, which starts during the run: its files are apart, in the second half.
    for (const [n, file] of dogtag.entries())
      order.splice(Math.round((servers * (dogtag.length + n)) / (dogtag.length * 2)) + n, 0, file);
    return order;
  }
}
