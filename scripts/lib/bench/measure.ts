/** Runs the load generator against one server, and watches what the server uses meanwhile. */
import { fork, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpuSeconds, residentMiB, threadSeconds } from './cpu.ts';
import type { Job, LoadMessage, Result } from './load.ts';

export interface Measurement {
  readonly result: Result;
  /** Seconds of CPU that the server's processes used while measuring. */
  readonly cpu: number;
  /** MiB that they had at the end. */
  readonly memory: number;
  /** Seconds of CPU by thread of the server's first process: its id and name. */
  readonly threads: ReadonlyMap<string, number>;
  /** Milliseconds that its event loop was late, at the 99th percentile; undefined where nobody can tell. */
  readonly loopDelay?: number | undefined;
  /** When the measuring began and ended, in microseconds of the system's monotonic clock. */
  readonly window: readonly [from: number, to: number];
}

interface Glance {
  readonly at: number;
  readonly cpu: number;
  readonly memory: number;
  readonly threads: ReadonlyMap<string, number>;
}

function glance(pid: number): Glance {
  const at = Number(process.hrtime.bigint() / 1000n);
  return { at, cpu: cpuSeconds(pid), memory: residentMiB(pid), threads: threadSeconds(pid) };
}

/** Seconds that a job may take beside its measuring. */
const PATIENCE = 120;

/** Runs one job in a process of its own. @param folder where its file may lie */
export async function measure(job: Job, folder: string, serverPid: number): Promise<Measurement> {
  const { result, before, after } = await runJob(job, folder, () => glance(serverPid));
  return measurement(result, before, after);
}

/** The same, with a look at something when the measuring begins and ends. */
export function runJob<Look>(
  job: Job,
  folder: string,
  look: () => Look,
): Promise<{ readonly result: Result; readonly before: Look; readonly after: Look }> {
  const child = forkLoad(job, join(folder, 'job.json'));
  const timer = setTimeout(() => child.kill('SIGKILL'), (job.warmUp + job.seconds + PATIENCE) * 1000);
  return new Promise((resolve, reject) => {
    let [before, after]: (Look | undefined)[] = [];
    let result: Result | undefined;
    child.on('message', (message: LoadMessage) => {
      if (message.type === 'measuring') before = look();
      else if (message.type === 'measured') after = look();
      else if ('result' in message) ({ result } = message);
    });
    child.on('exit', () => {
      clearTimeout(timer);
      if (result === undefined || before === undefined || after === undefined)
        reject(new Error('the load generator died'));
      else resolve({ result, before, after });
    });
  });
}

/** Starts the load generator, which sends its {@link LoadMessage}s. @param file where the job may lie */
export function forkLoad(job: Job, file: string): ChildProcess {
  writeFileSync(file, JSON.stringify(job));
  return fork(new URL('./load.ts', import.meta.url), [file], { stdio: 'inherit' });
}

function measurement(result: Result, before: Glance, after: Glance): Measurement {
  const threads = [...after.threads].map(
    ([name, seconds]) => [name, seconds - (before.threads.get(name) ?? 0)] as const,
  );
  return {
    result,
    cpu: after.cpu - before.cpu,
    memory: after.memory,
    threads: new Map(threads),
    window: [before.at, after.at],
  };
}
