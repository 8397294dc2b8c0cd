/** Schedules work on the event loop: in turns, and periodically. */

/** Pieces of work per iteration. */
const IN_A_TURN = 16;

let begun = 0;
const waiting: (() => void)[] = [];

/**
 * Runs a piece of work of up to half a millisecond in this event-loop iteration or, after a number of pieces, in a
 * later one, in order. Bursts (a crowd of requests, replies to a shared commit) then do not delay timers and other
 * connections.
 */
export function inTurn(work: () => void): void {
  if (begun >= IN_A_TURN) waiting.push(work);
  else begin(work);
}

/** Runs the work after each interval (milliseconds) while the process has other work. Returns a function that stops it. */
export function atIntervals(interval: number, work: () => void): () => void {
  const timer = setInterval(work, interval).unref();
  return () => clearInterval(timer);
}

/** {@link atIntervals}, and now. */
export function every(interval: number, work: () => void): () => void {
  const stop = atIntervals(interval, work);
  work();
  return stop;
}

function begin(work: () => void): void {
  if (++begun === 1) setImmediate(nextTurn);
  work();
}

function nextTurn(): void {
  begun = 0;
  for (const work of waiting.splice(0, IN_A_TURN)) begin(work);
}
