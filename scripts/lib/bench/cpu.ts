/** CPU time of a process and its children, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks per second in /proc/PID/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly seconds: number;
}

function readStat(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name may hold blanks and brackets: what counts stands after the last one.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [parent, user, system] = [1, 11, 12].map((index) => Number(fields[index]));
    if (parent === undefined || user === undefined || system === undefined) return undefined;
    return { pid, parent, seconds: (user + system) / TICKS_PER_SECOND };
  } catch {
    return undefined; // It ended while we looked.
  }
}

/** Seconds of CPU that a process and its living descendants have used so far. */
export function cpuSeconds(pid: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const stats = pids.map((name) => readStat(Number(name))).filter((stat) => stat !== undefined);
  const family = new Set([pid]);
  // Children may stand before their parents in the list: look until nothing is added.
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const stat of stats) if (family.has(stat.parent)) family.add(stat.pid);
  }
  return stats.filter((stat) => family.has(stat.pid)).reduce((sum, stat) => sum + stat.seconds, 0);
}
