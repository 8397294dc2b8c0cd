/** CPU time and memory of a process and its children, from Linux's /proc. */
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
