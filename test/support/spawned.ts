/** Programs of others that tests start: started until they answer, and killed. */
import type { ChildProcess } from 'node:child_process';
import { until } from './until.ts';

/** Waits for a program to answer. @param atMost milliseconds */
export async function untilReady(name: string, ready: () => Promise<boolean>, atMost?: number): Promise<void> {
  await until(`${name} answers`, ready, atMost);
}

/** Kills a program, unless it has ended, and waits for its end. */
export async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** The pid of a process that runs. 0 in its place would signal the processes of the tests. */
export function pidOf({ pid }: { readonly pid: number | undefined }): number {
  if (pid === undefined) throw new Error('no process');
  return pid;
}
