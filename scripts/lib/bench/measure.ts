/** Shared by the benchmarks: CPU time and memory of a process and its children, from Linux's /proc; durations and medians. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks per second in /proc/PID/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
/** Bytes, on the machines that the tests run on. */
const PAGE = 4096;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly seconds: number;
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
  const [parent = 0, user = 0, system = 0, residentPages = 0] = [1, 11, 12, 21].map((index) => Number(fields[index]));
  return [{ pid, parent, seconds: (user + system) / TICKS_PER_SECOND, residentPages }];
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

/** Seconds of CPU that a process and its living descendants have used. */
export function cpuSeconds(pid: number): number {
  return family(pid).reduce((sum, stat) => sum + stat.seconds, 0);
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
