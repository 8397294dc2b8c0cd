/** When work runs on the event loop of this process or thread: a fair share for each caller, and work that repeats. */

/** Pieces of work begun in one turn. */
const IN_A_TURN = 16;

let begun = 0;
const waiting: (() => void)[] = [];

/**
 * Begins a piece of work of up to half a millisecond in this turn of the event loop, or, once so many have begun in it, in a later one, in the order
 * of the calls. So what all come at once with (a crowd of requests, the replies to a commit that many shared) does not keep timers and other
 * connections waiting until all of it is done.
 */
export function inTurn(work: () => void): void {
  if (begun >= IN_A_TURN) waiting.push(work);
  else begin(work);
}

/** Does the work now, and again after each interval (in milliseconds) while the process has other work. Returns what stops it. */
export function every(interval: number, work: () => void): () => void {
  const timer = setInterval(work, interval).unref();
  work();
  return () => clearInterval(timer);
}

function begin(work: () => void): void {
  if (++begun === 1) setImmediate(nextTurn);
  work();
}

function nextTurn(): void {
  begun = 0;
  for (const work of waiting.splice(0, IN_A_TURN)) begin(work);
}
