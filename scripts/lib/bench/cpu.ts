/** CPU time and memory of a process and its children, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks per second in /proc/PID/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Bytes, on every machine of ours. */
const PAGE = 4096;

interface Stat {
  readonly pid: number;
  readonly name: string;
  readonly parent: number;
  readonly seconds: number;
  readonly residentPages: number;
}

const readStat = (pid: number): Stat | undefined => parseStat(pid, read(`/proc/${pid}/stat`));

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // It ended while we looked.
  }
}

function parseStat(pid: number, text: string | undefined): Stat | undefined {
  if (text === undefined) return undefined;
  // The command's name may hold blanks and brackets: what counts stands after the last one.
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const [parent, user, system, residentPages] = [1, 11, 12, 21].map((index) => Number(fields[index]));
  if (parent === undefined || user === undefined || system === undefined || residentPages === undefined)
    return undefined;
  const name = text.slice(text.indexOf('(') + 1, end);
  return { pid, name, parent, seconds: (user + system) / TICKS_PER_SECOND, residentPages };
}

/** A process and its living descendants. */
function family(pid: number): Stat[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const stats = pids.map((name) => readStat(Number(name))).filter((stat) => stat !== undefined);
  const members = new Set([pid]);
  // Children may stand before their parents in the list: look until nothing is added.
  for (let size = 0; size !== members.size;) {
    size = members.size;
    for (const stat of stats) if (members.has(stat.parent)) members.add(stat.pid);
  }
  return stats.filter((stat) => members.has(stat.pid));
}

/** Seconds of CPU that a process and its living descendants have used so far. */
export function cpuSeconds(pid: number): number {
  return family(pid).reduce((sum, stat) => sum + stat.seconds, 0);
}

/** MiB of memory that a process and its descendants have now; what they share counts for each. */
export function residentMiB(pid: number): number {
  return family(pid).reduce((sum, stat) => sum + stat.residentPages * PAGE, 0) / 2 ** 20;
}

/** Seconds of CPU of each thread of one process so far, by its id and name. */
export function threadSeconds(pid: number): Map<string, number> {
  const folder = `/proc/${pid}/task`;
  return new Map(
    readdirSync(folder).flatMap((id) => {
      const stat = parseStat(Number(id), read(`${folder}/${id}/stat`));
      return stat === undefined ? [] : [[`${id} ${stat.name}`, stat.seconds] as const];
    }),
  );
}
