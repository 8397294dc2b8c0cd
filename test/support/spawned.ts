/** Programs of others that tests start: started until they answer, and killed. */
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for a program to answer, five seconds at most. */
export async function untilReady(name: string, ready: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await ready()) return;
    await sleep(25);
  }
  throw new Error(`${name} does not answer`);
}

/** Kills a program, unless it has ended, and waits for its end. */
export async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
