/** Shared by the benchmarks: CPU time and memory of a process and its children, from Linux's /proc; durations and medians. */
import { readdirSync, readFileSync } from 'node:fs';

/** Bytes, on the machines that the tests run on. */
const PAGE = 4096;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly residentPages: number;
}

function readStat(pid: number): readonly Stat[] {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return []; // It has ended.
  }
  // The name of the command may contain blanks and brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [parent = 0, residentPages = 0] = [1, 21].map((index) => Number(fields[index]));
  return [{ pid, parent, residentPages }];
}

/** A process and its living descendants. */
function family(pid: number): Stat[] {
  const stats = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? readStat(Number(name)) : []));
  const members = new Set([pid]);
  // Children may be listed before their parents.
  for (let size = 0; size !== members.size;) {
    size = members.size;
    for (const stat of stats) if (members.has(stat.parent)) members.add(stat.pid);
  }
  return stats.filter((stat) => members.has(stat.pid));
}

/** Nanoseconds of CPU of a thread. */
function threadTime(task: string): number {
  try {
    return Number(readFileSync(`${task}/schedstat`, 'latin1').split(' ')[0]);
  } catch {
    return 0; // It has ended.
  }
}

/** Seconds of CPU that the living threads of a process and of its descendants have used. */
export function cpuSeconds(pid: number): number {
  const threads = family(pid).flatMap((stat) => {
    const tasks = `/proc/${stat.pid}/task`;
    return readdirSync(tasks).map((id) => threadTime(`${tasks}/${id}`));
  });
  return threads.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e9;
}

/** MiB of memory of a process and its descendants; shared memory counts for each. */
export function residentMiB(pid: number): number {
  return family(pid).reduce((sum, stat) => sum + stat.residentPages * PAGE, 0) / 2 ** 20;
}

/** Milliseconds. */
export interface Duration {
  readonly took: number;
  /** Of CPU, which other load on the machine does not change. */
  readonly computed: number;
}

export interface Measured<T> extends Duration {
  readonly result: T;
}

/** Measures a call, with the CPU of this process. */
export async function measured<T>(work: () => T | Promise<T>): Promise<Measured<T>> {
  const [cpu, since] = [process.cpuUsage(), performance.now()];
  const result = await work();
  const took = performance.now() - since;
  const { user, system } = process.cpuUsage(cpu);
  return { result, took, computed: (user + system) / 1000 };
}

/** @param share 0.5 for the median */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

export const figure = ({ took, computed }: Duration): string =>
  `${took.toFixed(1)} ms (${computed.toFixed(1)} of computing)`;

/** Prints a figure. */
export type Say = (what: string, figure: string) => void;
