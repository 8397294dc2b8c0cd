/** How tests wait: for a condition. */
import { setTimeout as sleep } from 'node:timers/promises';
import { recordNote } from './run-notes.ts';

/** Milliseconds between two looks. */
const INTERVAL = 25;

/**
 * Waits until a probe returns something other than false and undefined, and returns that.
 *
 * @param within milliseconds; a bound, not an expectation
 * @throws {Error} that names `what` when the time is over.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  within = 60_000,
): Promise<Exclude<T, false | undefined>> {
  const began = performance.now();
  for (;;) {
    const found = await probe();
    if (isFound(found)) {
      recordNote('wait', what, performance.now() - began);
      return found;
    }
    if (performance.now() - began > within) throw new Error(`not within ${within} ms: ${what}`);
    await sleep(INTERVAL);
  }
}

function isFound<T>(found: T): found is Exclude<T, false | undefined> {
  return found !== false && found !== undefined;
}

/**
 * Lets a span of real time pass: the length of a fault or of a validity period, or the pause between two requests of a
 * load. Never a wait for something to happen.
 */
export async function pause(ms: number): Promise<void> {
  recordNote('wait', 'a span of time', ms);
  await sleep(ms);
}
